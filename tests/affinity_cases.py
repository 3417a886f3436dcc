"""Which test file holds the oracle of each formula of the table; no formula may be without one."""

BOTH_HOWS = ("Power", "Expected")
POWER_ONLY = ("Poisson", "Gamma", "Geometric", "Dirichlet")
ROWS = {("Multinomial", "Multinomial", "Power", length, "exact") for length in ("all", "given")}
SPARSE = {
    ("SparseMultinomial", other, "Power", length, "exact")
    for other in ("SparseMultinomial", "Multinomial")
    for length in ("all", "given")
}
PREDICTIVE = {
    *((name, name, "Power", "iid", "exact") for name in ("NegativeBinomial", "StudentT", "NaturalFamily")),
    *(("DirichletMultinomial", "DirichletMultinomial", "Power", length, "exact") for length in ("all", "given")),
}
BOTH = ("Bernoulli", "Exponential", "VonMises")
FAMILIES = {(name, name, "Power", "iid", "exact") for name in (*POWER_ONLY, *BOTH)} | {
    (name, name, "Expected", "iid", "exact") for name in BOTH
}

COMPONENTS = [("Mixture", "Mixture"), ("Mixture", "Leaf"), ("KDE", "KDE"), ("KDE", "Leaf"), ("KDE", "Mixture")]
MIXTURES = {(*pair, how, "iid", "exact") for pair in COMPONENTS for how in BOTH_HOWS}

CHAINS = (
    {("MarkovChain", "MarkovChain", "Power", "given", "exact")}
    | {("Chain", other, how, "given", "exact") for other in ("Chain", "HMM") for how in BOTH_HOWS}
    | {("SiteModel", "SiteModel", how, "iid", "exact") for how in BOTH_HOWS}
)
NETS = [("LinearGaussianNet", "LinearGaussianNet"), ("LinearGaussianNet", "Gaussian")]
PROFILES = {
    ("ProfileHMM", other, how, length, "exact")
    for other in ("ProfileHMM", "HMM")
    for how in BOTH_HOWS
    for length in ("all", "given")
}
LINEAR = {(*pair, how, "iid", "exact") for pair in NETS for how in BOTH_HOWS}
SYSTEMS = {("LDS", "LDS", how, "given", method) for how in BOTH_HOWS for method in ("exact", "marginal")}
FACTORIAL = (
    {("FactorialHMM", "FactorialHMM", how, "given", method) for how in BOTH_HOWS for method in ("exact", "collapsed")}
    | {("FactorialHMM", "HMM", how, "given", "exact") for how in BOTH_HOWS}
    | {("FactorialHMM", "FactorialHMM", "Power", "given", "mean-field")}
)
BAYES = {("BayesNet", "BayesNet", how, "iid", "exact") for how in BOTH_HOWS} | {
    ("BayesNet", "HMM", how, length, "exact") for how in BOTH_HOWS for length in ("all", "given")
}
METHODS = ("exact", "all-pairs", "paired")
SWITCHING = {("SwitchingLDS", "SwitchingLDS", how, "given", method) for how in BOTH_HOWS for method in METHODS}
DRAWS = {("Sampled", "Sampled", how, length, "exact") for how in BOTH_HOWS for length in ("all", "given")}
OWN = {("Adapted", "Value", how, length, "exact") for how in (*BOTH_HOWS, "Jeffreys") for length in ("all", "given")}
LEAVES = ("Gaussian", "Categorical", "SiteModel", "Multinomial", *POWER_ONLY, *BOTH)
DIVERGENCES = {(name, name, "Jeffreys", "iid", "exact") for name in LEAVES} | {
    ("Sampled", "Sampled", "Jeffreys", length, "exact") for length in ("all", "given")
}

ONE_POINT = [
    *COMPONENTS,
    *((name, name) for name in ("Bernoulli", "Exponential", "Gaussian", "Categorical", "SiteModel", "BayesNet")),
]
LAPLACE = {
    *((*pair, "ExpectedLaplace", "iid", "exact") for pair in ONE_POINT),
    *(("Chain", other, "ExpectedLaplace", "given", "exact") for other in ("Chain", "HMM")),
    *(
        (*pair, "ExpectedLaplace", length, "exact")
        for pair in (("HMM", "HMM"), ("BayesNet", "HMM"), ("Sampled", "Sampled"), ("Adapted", "Value"))
        for length in ("all", "given")
    ),
}

EVERY_HOW = (*BOTH_HOWS, "ExpectedLaplace")
CONVERSIONS = {
    *(("HMM", "Leaf", how, "given", "exact") for how in EVERY_HOW),
    *(("Chain", "Categorical", how, "given", "exact") for how in EVERY_HOW),
    *((left, "LinearGaussianNet", how, "iid", "exact") for left in ("Mixture", "KDE") for how in EVERY_HOW),
    *(("LDS", "Gaussian", how, "given", "exact") for how in BOTH_HOWS),
    *(("SwitchingLDS", other, how, "given", m) for other in ("LDS", "Gaussian") for how in BOTH_HOWS for m in METHODS),
    *(("LDS", "LDS", how, "given", method) for how in BOTH_HOWS for method in METHODS[1:]),
    ("Gamma", "Exponential", "Power", "iid", "exact"),
    *(("Multinomial", "Categorical", "Power", length, "exact") for length in ("all", "given")),
}

ELSEWHERE = {
    "test_affinity_conversions": CONVERSIONS,
    "test_laplace": LAPLACE,
    "test_affinity_families": FAMILIES | ROWS,
    "test_sparse_documents": SPARSE,
    "test_affinity_predictive": PREDICTIVE,
    "test_affinity_mixture": MIXTURES,
    "test_affinity_chains": CHAINS,
    "test_affinity_profile": PROFILES,
    "test_affinity_linear_gaussian": LINEAR | SYSTEMS,
    "test_affinity_factorial": FACTORIAL,
    "test_affinity_bayes_net": BAYES,
    "test_affinity_switching": SWITCHING,
    "test_affinity_sampled": DRAWS,
    "test_kernels_divergences": DIVERGENCES,
    "test_adapt": OWN,
}
