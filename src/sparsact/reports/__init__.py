"""Reports: figures with their numbers, and HTML pages that hold them, of a fit, a network and a measurement."""
