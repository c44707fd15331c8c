"""Certificates: the most units of a network that any input switches on, proved or estimated."""

from sparsact.certificate.certificate import Certificate
from sparsact.certificate.most_active import certify

__all__ = ["Certificate", "certify"]
