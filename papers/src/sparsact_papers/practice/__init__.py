"""Experiments beyond both papers, on models as they are used: one a module."""
