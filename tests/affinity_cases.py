"""Which test file holds the oracle of each formula of the table; no formula may be without one."""

POWER_ONLY = ("Poisson", "Gamma", "Geometric", "Dirichlet", "Multinomial")
BOTH = ("Bernoulli", "Exponential", "VonMises")
FAMILIES = {(name, name, "Power", "iid", "exact") for name in (*POWER_ONLY, *BOTH)} | {
    (name, name, "Expected", "iid", "exact") for name in BOTH
}

ELSEWHERE = {"test_affinity_families": FAMILIES}
