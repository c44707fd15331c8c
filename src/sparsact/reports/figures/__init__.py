"""One figure a file: ``frame(...)`` gives its numbers, ``plot(frame)`` draws them."""
