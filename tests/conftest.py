"""Settings of the whole test suite."""

from hypothesis import settings

# A busy machine is no failure: time is limited per test by pytest-timeout instead.
settings.register_profile("sparsact", deadline=None)
settings.load_profile("sparsact")
