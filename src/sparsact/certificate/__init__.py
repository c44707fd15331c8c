"""Certificates: the most units of a network that any input switches on, proved or estimated."""

from sparsact.certificate.most_active import certify
from sparsact.certificate.statement import Certificate

__all__ = ["Certificate", "certify"]
