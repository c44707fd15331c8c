"""Certificates: the most units of a network that any input switches on, proved or estimated."""

from sparsact.activity import Certificate, StackCertificate
from sparsact.certificate.most_active import certify
from sparsact.certificate.stacks import certify_stack

__all__ = ["Certificate", "StackCertificate", "certify", "certify_stack"]
