"""Whose the terms of a target are, by the kind of model, in a sentence of the report."""

TERMS_OF = {
    "sparse": "These rows have chosen the terms, each significant among all products that were searched (5 %, "
    "Bonferroni), so that intervals of weak ones are a little too narrow.",
    "gp": "The effects are posterior means, with 95 % posterior intervals; those of weak effects lean on the prior, "
    "which expects them to be small.",
    "latent": "The effects are those of the latent, which a floor, a ceiling or a curve of the measurement does not "
    "bend, with their 95 % intervals.",
}
