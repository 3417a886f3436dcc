"""The closed list of what a file may name, beside the public estimators of this package.

Names in files are those of the modules below, where classes are documented, not of those where they happen to be
defined: ``sklearn.svm.SVC``. What is not listed is not loaded, whatever a file says.
"""

from __future__ import annotations

# Built by constructor from their parameters, and given fitted attributes. Before a class is added, see what its
# compiled code believes of its attributes and parameters (an index, a divisor), and check that in ``checks.py``.
ESTIMATORS = {
    "genkern.kernels.composites": "Constant IntegerPower Product Sum",
    "genkern.kernels.transforms": "ExponentialKernel Normalized",
    "genkern.learn.calibration": "Calibrator",
    "genkern.learn.calibrated": "CalibratedLinearSVC CalibratedOneVsRest CalibratedSearchCV",
    "genkern.recipes.homology_parts": "CrossFitProfiles Landmarks ProfileOdds ProfileScores",
    "genkern.recipes.learnt_sum": "LearntSum",
    "genkern.recipes.recipe": "Alike Recipe",
    "genkern.recipes.series_parts": "Outline OwnUnits SeriesSum",
    "genkern.recipes.symbols": "OfObjects SymbolSum",
    "genkern.recipes.text": "WordCounts",
    "sklearn.calibration": "CalibratedClassifierCV _SigmoidCalibration",
    "sklearn.compose": "ColumnTransformer TransformedTargetRegressor",
    "sklearn.decomposition": "KernelPCA PCA TruncatedSVD",
    "sklearn.discriminant_analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
    "sklearn.dummy": "DummyClassifier DummyRegressor",
    "sklearn.ensemble": "StackingClassifier StackingRegressor VotingClassifier VotingRegressor",
    "sklearn.feature_extraction.text": "CountVectorizer TfidfTransformer TfidfVectorizer",
    "sklearn.feature_selection": "SelectKBest SelectPercentile VarianceThreshold",
    "sklearn.impute": "SimpleImputer",
    "sklearn.isotonic": "IsotonicRegression",
    "sklearn.kernel_approximation": "Nystroem RBFSampler",
    "sklearn.kernel_ridge": "KernelRidge",
    "sklearn.linear_model": (
        "ElasticNet Lasso LinearRegression LogisticRegression LogisticRegressionCV Perceptron Ridge RidgeCV "
        "RidgeClassifier RidgeClassifierCV SGDClassifier"
    ),
    "sklearn.model_selection": "GridSearchCV RandomizedSearchCV FixedThresholdClassifier TunedThresholdClassifierCV",
    "sklearn.multiclass": "OneVsOneClassifier OneVsRestClassifier _ConstantPredictor",
    "sklearn.naive_bayes": "BernoulliNB ComplementNB GaussianNB MultinomialNB",
    "sklearn.neighbors": "KNeighborsClassifier NearestCentroid",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing": (
        "FunctionTransformer KernelCenterer LabelBinarizer LabelEncoder MaxAbsScaler MinMaxScaler Normalizer "
        "OneHotEncoder OrdinalEncoder PolynomialFeatures PowerTransformer QuantileTransformer RobustScaler "
        "StandardScaler"
    ),
    "sklearn.svm": "LinearSVC LinearSVR NuSVC NuSVR OneClassSVM SVC SVR",
}

# Not estimators: built by constructor from the attributes of the same names.
PLAIN = {
    "sklearn.calibration": "_CalibratedClassifier",
    "sklearn.model_selection": (
        "GroupKFold KFold LeaveOneGroupOut LeaveOneOut LeavePGroupsOut LeavePOut ShuffleSplit StratifiedGroupKFold "
        "StratifiedKFold StratifiedShuffleSplit GroupShuffleSplit RepeatedKFold RepeatedStratifiedKFold TimeSeriesSplit"
    ),
}

# Named tuples.
TUPLES = {
    "genkern.features.score_blocks": "Layout",
    "genkern.features.whitening": "LowRank Whitener",
}

# Functions without side effects.
FUNCTIONS = {
    "genkern.recipes.symbols": "_covariance_names _covariances _length_name _log_lengths _moment_names _moments",
    "numpy": "absolute arctan arcsinh cbrt exp expm1 log log10 log1p log2 sign sqrt square tanh",
    "sklearn.feature_selection": "chi2 f_classif",
}

# Types that are parameters, such as dtype=.
TYPES = {
    "builtins": "bool float int str",
    "numpy": "bool float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8",
}
