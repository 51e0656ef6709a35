"""What several test files need."""

import torch

# Everything is compared in f64. The numbers are of order 1 to 100 and pass
# through a few hundred additions and a power of at most 4, each of which adds
# less than 4 * 2^-53 of the largest term: well below this. What the tests look
# for (a wrong mask, scale, head or activation) shows in the first digits.
TOLERANCE = dict(rtol=1e-11, atol=1e-11)


def random(*shape, seed=0, dtype=torch.float64, grad=False):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)
    return x.requires_grad_(grad)


def assert_equal(actual, expected):
    torch.testing.assert_close(actual, expected, **TOLERANCE)
