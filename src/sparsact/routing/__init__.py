"""Routers: from an input to the units that it switches on."""
