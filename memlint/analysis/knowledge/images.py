"""Functions that read images, and give bytes; what arrays of them are made with.

None of these libraries is there where the tests run, so that these rows rest on their
documentation: the pixels are ``uint8``.
"""

from __future__ import annotations

READERS = frozenset(
    {"cv2.imread", "cv2.imdecode", "PIL.Image.open", "imageio.imread",
     "imageio.v2.imread", "imageio.v3.imread", "torchvision.io.read_image",
     "torchvision.io.decode_image", "torchvision.io.decode_jpeg", "torchvision.io.decode_png",
     "torchvision.io.image.read_image"}
)  # fmt: skip

TO_ARRAY = frozenset(
    {"numpy.array", "numpy.asarray", "numpy.ascontiguousarray", "torch.from_numpy",
     "torch.as_tensor", "torch.tensor"}
)  # fmt: skip

KEEPING_DTYPE = frozenset(
    {".permute", ".transpose", ".unsqueeze", ".squeeze", ".contiguous", ".view", ".reshape",
     ".flip", ".copy", ".clone", ".resize", ".convert", ".t", ".flatten", "operator.getitem",
     "numpy.transpose", "numpy.moveaxis", "numpy.expand_dims", "torch.permute", "torch.unsqueeze",
     "torch.flip", "torch.stack", "torch.cat", "cv2.cvtColor", "cv2.resize", "cv2.flip"}
)  # fmt: skip
"""Operations whose result has the dtype of what they are given first."""
