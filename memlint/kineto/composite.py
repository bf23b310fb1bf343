"""The operators of PyTorch that are made of other ones and do nothing themselves.

The dispatcher takes them apart before anything computes (``CompositeImplicitAutograd``), so that
a profiler shows them around the operators that they call, and a dispatch mode never sees them.
Names whose overloads differ in this are left out.  Source: the dispatcher's table of torch 2.13.
"""

from __future__ import annotations

_NAMES = """
    __and__ __iand__ __ior__ __ixor__ __or__ __xor__ _add_batch_dim _autocast_to_full_precision
    _autocast_to_reduced_precision _backward _batch_norm_impl_index
    _batch_norm_impl_index_backward _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half
    _cast_Int _cast_Long _cast_Short _choose_qparams_per_tensor _convolution_double_backward
    _convolution_mode _cufft_clear_plan_cache _cufft_get_plan_cache_max_size
    _cufft_get_plan_cache_size _cufft_set_plan_cache_max_size _debug_has_internal_overlap
    _dim_arange _embedding_bag_sparse_backward _fused_rms_norm _gather_sparse_backward
    _has_compatible_shallow_copy_type _is_zerotensor _lu_with_info _nnpack_available
    _pack_padded_sequence_backward _pad_circular _pad_enum _pad_packed_sequence
    _propagate_xla_data _remove_batch_dim _reshape_from_tensor _rowwise_prune
    _saturate_weight_to_fp16 _scaled_dot_product_attention_math _shape_as_tensor
    _sobol_engine_draw _sobol_engine_ff_ _sobol_engine_initialize_state_ _sobol_engine_scramble_
    _sparse_bsc_tensor_unsafe _sparse_bsr_tensor_unsafe _sparse_compressed_tensor_unsafe
    _sparse_coo_tensor_unsafe _sparse_csc_tensor_unsafe _sparse_csr_tensor_unsafe _sparse_mm
    _thnn_differentiable_gru_cell_backward _thnn_differentiable_lstm_cell_backward
    _thnn_fused_lstm_cell_backward _to_cpu _unpack_dual _use_cudnn_rnn_flatten_weight
    _validate_sparse_bsc_tensor_args _validate_sparse_bsr_tensor_args
    _validate_sparse_compressed_tensor_args _validate_sparse_coo_tensor_args
    _validate_sparse_csc_tensor_args _validate_sparse_csr_tensor_args _version _weight_norm
    _weight_norm_differentiable_backward _wrapped_linear_prepack
    _wrapped_quantized_linear_prepacked absolute absolute_ adaptive_avg_pool1d
    adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adjoint
    affine_grid_generator_backward alpha_dropout alpha_dropout_ arccos arccos_ arccosh arccosh_
    arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan2_ arctan_ arctanh arctanh_ argsort
    argwhere atleast_1d atleast_2d atleast_3d avg_pool1d batch_norm bilinear broadcast_tensors
    broadcast_to can_cast cartesian_prod cdist chain_matmul chalf choose_qparams_optimized chunk
    clip clip_ coalesce column_stack combinations concat concatenate conj conj_physical
    contiguous conv1d conv2d conv3d conv_tbc_backward conv_transpose1d conv_transpose2d
    conv_transpose3d corrcoef cosine_embedding_loss cosine_similarity cov cross
    cross_entropy_loss ctc_loss cudnn_is_acceptable cummaxmin_backward cumprod_backward
    cumulative_trapezoid data det diag diagflat diff dim divide divide_ dropout dropout_ dsplit
    dstack einsum embedding_backward embedding_bag embedding_sparse_backward expand_as
    fake_quantize_per_channel_affine fake_quantize_per_channel_affine_cachemask_backward
    fake_quantize_per_tensor_affine fake_quantize_per_tensor_affine_cachemask_backward
    fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation
    fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation
    fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix
    feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ fft_fft
    fft_fft2 fft_fftn fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn
    fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft
    fft_rfft2 fft_rfftn fill_diagonal_ fix fix_ flatten flatten_dense_tensors fliplr flipud
    float_power float_power_ frobenius_norm fused_moving_avg_obs_fake_quant gather_backward ger
    get_device get_gradients gradient greater greater_ greater_equal greater_equal_ grid_sampler
    group_norm gru gru_cell hinge_embedding_loss histogramdd hsplit hstack imag
    index_select_backward infinitely_differentiable_gelu_backward inner instance_norm inverse
    is_complex is_conj is_contiguous is_distributed is_floating_point is_inference is_leaf
    is_neg is_nonzero is_signed is_vulkan_available isclose isfinite isreal istft item kl_div
    kron l1_loss layer_norm less less_ less_equal less_equal_ linalg_cholesky linalg_cond
    linalg_det linalg_diagonal linalg_eigh linalg_eigvals linalg_eigvalsh linalg_inv
    linalg_ldl_factor linalg_lu_factor linalg_matmul linalg_matrix_norm linalg_matrix_power
    linalg_matrix_rank linalg_multi_dot linalg_norm linalg_slogdet linalg_solve linalg_solve_ex
    linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vander linalg_vecdot
    linear log_sigmoid log_softmax logdet lstm lstm_cell lu_solve mH mT margin_ranking_loss
    masked_select_backward matmul matrix_H matrix_exp matrix_exp_backward matrix_power
    max_pool1d max_pool1d_with_indices max_pool2d max_pool3d meshgrid mish_backward moveaxis
    movedim msort multilabel_margin_loss multiply multiply_ nanmean nanquantile narrow
    native_channel_shuffle negative negative_ nested_to_padded_tensor nll_loss nll_loss2d
    nll_loss_nd nonzero_numpy norm_except_dim not_equal not_equal_ nuclear_norm numel numpy_T
    one_hot orgqr outer output_nr pad pad_sequence pairwise_distance pdist pin_memory pinverse
    poisson_nll_loss positive prelu promote_types qr quantile quantized_gru_cell
    quantized_lstm_cell quantized_rnn_relu_cell quantized_rnn_tanh_cell ravel real relu6 relu6_
    requires_grad_ reshape reshape_as resolve_conj resolve_neg result_type retain_grad
    retains_grad rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell row_stack rrelu rrelu_
    scaled_dot_product_attention selu selu_ set_data size slogdet slow_conv3d smm softmax
    sparse_bsc_tensor sparse_bsr_tensor sparse_csc_tensor sparse_csr_tensor special_digamma
    special_erf special_erfc special_erfinv special_exp2 special_expit special_expm1
    special_gammainc special_gammaincc special_gammaln special_i0 special_log1p
    special_log_softmax special_logit special_logsumexp special_multigammaln special_ndtr
    special_polygamma special_psi special_round special_sinc special_softmax special_xlogy
    square square_ sspaddmm stft storage_offset stride subtract subtract_ sum_to_size svd
    swapaxes swapaxes_ swapdims swapdims_ sym_is_contiguous sym_numel sym_size
    sym_storage_offset sym_stride take_along_dim tensor_split tensordot thnn_conv2d tile to
    to_dense to_dense_backward to_mkldnn_backward to_sparse to_sparse_bsc to_sparse_bsr
    to_sparse_csc to_sparse_csr trace_backward trapezoid trapz triplet_margin_loss true_divide
    true_divide_ type_as unflatten unflatten_dense_tensors unsafe_chunk
    value_selecting_reduction_backward vander view_as vsplit vstack
"""
COMPOSITE = frozenset(_NAMES.split())
