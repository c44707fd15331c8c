"""Ways to solve K + D: by a factor, by transforms of a cube, by products on a grid, and with inducing points."""
