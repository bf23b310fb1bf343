"""Calls that give Python objects, as many as a file, a folder or a table has entries."""

from __future__ import annotations

# Functions whose result has an object for each entry of what they read.
READERS = frozenset(
    {"json.load", "json.loads", "simplejson.load", "simplejson.loads", "ujson.load", "ujson.loads",
     "orjson.loads", "yaml.load", "yaml.safe_load", "yaml.full_load",
     "glob.glob", "os.listdir", "csv.reader", "csv.DictReader", "linecache.getlines",
     "torchvision.datasets.folder.make_dataset"}
)  # fmt: skip
# Those that give strings, one for a file or line; the others give what was written.
NAMES = frozenset({"glob.glob", "os.listdir", "linecache.getlines"})
# Methods of files, texts, paths and tables that do.
READING_METHODS = frozenset(
    {".readlines", ".splitlines", ".glob", ".rglob", ".iterdir", ".tolist", ".to_list",
     ".iterrows", ".itertuples", ".findall", ".fetchall", ".to_dicts", ".namelist", ".infolist",
     ".getnames"}
)  # fmt: skip
# What gives whatever was written: arrays, or as many Python objects as there were entries.
UNPICKLED = frozenset(
    {"pickle.load", "pickle.loads", "joblib.load", "dill.load", "cloudpickle.load", "numpy.load"}
)
# Datasets that list the files of a folder.
FOLDERS = frozenset(
    {"torchvision.datasets.ImageFolder", "torchvision.datasets.DatasetFolder",
     "torchvision.datasets.folder.ImageFolder", "torchvision.datasets.folder.DatasetFolder"}
)  # fmt: skip
# What puts the entries of several lists into one.
JOINING = frozenset({"builtins.sum", "itertools.chain.from_iterable"})
# Iterators over the lines of a file or the files of a tree.
ITERATORS = frozenset(
    {"builtins.open", "io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open",
     "jsonlines.open", "os.walk", "os.scandir", "glob.iglob", ".open"}
)  # fmt: skip
# Readers of tables: their columns of text are columns of Python objects.
TABLES = frozenset(
    {f"pandas.{name}" for name in (
        "read_csv", "read_table", "read_json", "read_excel", "read_fwf", "DataFrame", "concat",
        "merge",
    )}
)  # fmt: skip
# Methods of tables that give a table.
TABLE_METHODS = frozenset(
    {".reset_index", ".sample", ".dropna", ".drop", ".sort_values", ".query", ".merge", ".rename",
     ".drop_duplicates", ".set_index", ".fillna", ".assign", ".head", ".copy", ".loc", ".iloc"}
)  # fmt: skip
# What gives a collection of the same objects; the first operand is the collection.
HANDED_ON = frozenset(
    {"builtins.sorted", "builtins.list", "builtins.tuple", "builtins.dict", "builtins.reversed",
     "builtins.set", "builtins.frozenset", "builtins.filter", "builtins.enumerate",
     "builtins.zip", "copy.copy", "copy.deepcopy",
     "random.sample", "natsort.natsorted", "natsort.os_sorted", "tqdm.tqdm", "tqdm.auto.tqdm",
     "itertools.islice", "itertools.chain", ".copy", ".keys", ".items", ".values",
     "operator.add", "operator.iadd"}
)  # fmt: skip
# Functions that read one entry.
PARSERS = frozenset({"ast.literal_eval", "json.loads", "ujson.loads", "orjson.loads"})
# Functions that give a number: small ones are shared, and a list of others is small.
NUMBERS = frozenset({"builtins.int", "builtins.float", "builtins.len"})
# Methods and functions that give a string, or a list of the parts of one.
STRINGS = frozenset(
    {"os.path.join", "os.path.basename", "os.path.abspath", "os.path.splitext", "os.fspath",
     "builtins.str", "builtins.repr", ".strip", ".lstrip", ".rstrip", ".split", ".rsplit",
     ".partition", ".rpartition", ".lower", ".upper", ".join", ".format", ".replace", ".decode",
     ".removeprefix", ".removesuffix", ".as_posix", ".joinpath", ".with_suffix", "pathlib.Path"}
)  # fmt: skip
