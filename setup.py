"""Everything is in pyproject.toml but this: the wheel is for one platform."""

from setuptools import Distribution, setup


class BinaryDistribution(Distribution):
    """setuptools does not see that the library, which CMake built, is binary."""

    def has_ext_modules(self) -> bool:
        return True


setup(distclass=BinaryDistribution)
