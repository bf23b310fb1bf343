"""What goes in is made dense for torch's own attention, which takes it as it is."""

import torch

qkv = torch.randn(4, 256, 3, 8, 64)
for _ in range(3):
    x = qkv + 1.0
    q, k, v = x.permute(2, 0, 3, 1, 4)
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    torch.nn.functional.scaled_dot_product_attention(q, k, v)
