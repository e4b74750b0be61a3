"""The names of python-crfsuite, side by side with python-crfsuite."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from crfkit.compat import pycrfsuite as ours

theirs = pytest.importorskip("pycrfsuite")
WORDS = ["the", "dog\n", "犬", "", "a b", "x:y"]


def sequence(rng):
    return [
        {
            "w": str(rng.choice(WORDS)),
            "n": float(np.round(rng.normal(), 2)),
            "flag": bool(rng.random() < 0.5),
            "word": False,
            "previous": {"w": str(rng.choice(WORDS)), "deep": {"x": 1, "y": False}},
        }
        for _ in range(rng.integers(1, 7))
    ]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = [sequence(rng) for _ in range(80)]
    return X, [[str(rng.choice(["A", "B", "C"])) for _ in tokens] for tokens in X]


@pytest.fixture(scope="module")
def path(data, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("models") / "model.crfsuite")
    trainer = theirs.Trainer(verbose=False)
    for tokens, labels in zip(*data, strict=True):
        trainer.append(tokens, labels)
    trainer.train(path)
    return path


@pytest.fixture
def taggers(path):
    pair = ours.Tagger(), theirs.Tagger()
    for tagger in pair:
        tagger.open(path)
    return pair


def test_a_tagger_answers_as_python_crfsuite(taggers, data):
    our, their = taggers
    assert our.labels() == their.labels()
    # Without numbers another way of reading is taken.
    plain = [[{k: v for k, v in item.items() if k != "n"} for item in X] for X in data[0]]
    for tokens in data[0] + plain:
        labels = our.tag(tokens)
        assert labels == their.tag(tokens) == our.tag()
        assert our.probability(labels) == pytest.approx(their.probability(labels), abs=1e-12)
        for t in range(len(tokens)):
            for label in our.labels():
                assert our.marginal(label, t) == pytest.approx(their.marginal(label, t), abs=1e-12)


@pytest.mark.parametrize(
    "items",
    [
        [],
        [{}],
        [["w:the", "w:the"], {"unknown"}],
        [{"w": ["the", "a b"]}, {"previous": {"w": {"the"}}}],
        [{"previous": {"w": "the"}, "previous:w": "the"}],
        [{"flag": 1, "n": -3}],
    ],
)
def test_items_of_all_forms_are_read_as_by_python_crfsuite(taggers, items):
    our, their = taggers
    assert our.tag(items) == their.tag(items)
    for t in range(len(items)):
        assert our.marginal("A", t) == pytest.approx(their.marginal("A", t), abs=1e-12)


def test_an_item_sequence_can_be_tagged_twice(taggers, data):
    our, _ = taggers
    items = ours.ItemSequence(iter(data[0][0]))
    assert our.tag(items) == our.tag(items) == our.tag(data[0][0])
    assert len(items) == len(data[0][0])


def test_an_item_sequence_shows_attributes():
    items = ours.ItemSequence([["foo"], {"bar": {"baz": 1}}, ["a", "a"]])
    assert items.items() == [{"foo": 1.0}, {"bar:baz": 1.0}, {"a": 2.0}]
    assert repr(items) == "<ItemSequence of size 3>"


def test_threads_share_a_tagger(taggers, data):
    our, _ = taggers

    def query(tokens):
        our.set(tokens)
        labels = our.tag()
        return labels, our.probability(labels), our.marginal("A", 0)

    alone = [query(tokens) for tokens in data[0]]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(query, data[0] * 5))
    assert together == alone * 5


def test_info_reads_names_that_a_dump_cannot_hold(taggers):
    info = taggers[0].info()
    assert ("w:dog\n", "A") in info.state_features
    assert set(info.labels) == {"A", "B", "C"}
    assert info.header["num_labels"] == "3"
    assert info.attributes[next(iter(info.attributes))] == "0"


def test_the_model_of_usaddress_is_served():
    usaddress = pytest.importorskip("usaddress")
    our = ours.Tagger()
    our.open(usaddress.MODEL_PATH)
    info = our.info()
    assert (len(info.labels), len(info.attributes)) == (29, int(info.header["num_attrs"]))
    assert any("\n" in name for name in info.attributes)
    for text in ("1600 Pennsylvania Ave NW, Washington, DC 20500", "PO Box 12 Homer, AK"):
        items = usaddress.tokens2features(usaddress.tokenize(text))
        assert our.tag(items) == usaddress.TAGGER.tag(items)


def test_info_agrees_with_python_crfsuite(tmp_path, data):
    X = [[["a", "b"], ["c"]], [["c"], ["a"]]]
    path = str(tmp_path / "plain.crfsuite")
    trainer = theirs.Trainer(verbose=False)
    for tokens in X:
        trainer.append(tokens, ["X", "Y"])
    trainer.train(path)
    pair = ours.Tagger(), theirs.Tagger()
    for tagger in pair:
        tagger.open(path)
    our, their = (tagger.info() for tagger in pair)
    assert (our.labels, our.attributes, our.header) == (
        their.labels,
        their.attributes,
        their.header,
    )
    for name in ("transitions", "state_features"):
        assert getattr(our, name) == pytest.approx(getattr(their, name), abs=1e-6)
    files = tmp_path / "ours.txt", tmp_path / "theirs.txt"
    for tagger, file in zip(pair, files, strict=True):
        tagger.dump(str(file))
    assert sorted(files[0].read_text().split("\n")) == sorted(files[1].read_text().split("\n"))


def test_a_tagger_reports_wrong_use(taggers, tmp_path):
    our, _ = taggers
    for call in (our.tag, lambda: our.marginal("A", 0), lambda: our.probability([])):
        with pytest.raises(ValueError, match="no sequence is set"):
            call()
    our.set([["w:the"]])
    with pytest.raises(ValueError, match="does not know the label 'Q'"):
        our.marginal("Q", 0)
    for position in (1, -1):
        with pytest.raises(ValueError, match=f"position {position} is none of the 1"):
            our.marginal("A", position)
    with pytest.raises(ValueError, match="2 labels, but the sequence has 1 items"):
        our.probability(["A", "B"])
    with pytest.raises(TypeError, match="position 0"):
        our.tag([{1: "x"}])
    our.close()
    with pytest.raises(ValueError, match="no model"):
        our.labels()
    with pytest.raises(ValueError, match="not a CRFsuite model"):
        our.open_inmemory(b"x" * 100)
    with pytest.raises(FileNotFoundError):
        our.open(str(tmp_path / "missing.crfsuite"))


def test_open_closes_at_the_end_of_a_block(path):
    tagger = ours.Tagger()
    with tagger.open(path):
        tagger.labels()
    with pytest.raises(ValueError, match="no model"):
        tagger.labels()


@pytest.mark.parametrize(
    "params", [{}, {"c1": 0.3, "c2": 0.1}, {"feature.possible_transitions": True}]
)
def test_a_trainer_reaches_the_objective_of_python_crfsuite(data, tmp_path, params):
    losses = []
    for module in (ours, theirs):
        trainer = module.Trainer(verbose=False, params={"epsilon": 1e-7, "delta": 1e-9, **params})
        for tokens, labels in zip(*data, strict=True):
            trainer.append(tokens, labels)
        path = str(tmp_path / f"{module.__name__}.crfsuite")
        trainer.train(path)
        losses.append(trainer.logparser.last_iteration["loss"])
        tagger = theirs.Tagger()
        tagger.open(path)
        assert tagger.labels() == list(dict.fromkeys(y for ys in data[1] for y in ys))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_held_out_sequences_are_scored_as_by_python_crfsuite(data, tmp_path):
    logs = []
    for module in (ours, theirs):
        trainer = module.Trainer(verbose=False, params={"epsilon": 1e-6})
        for number, (tokens, labels) in enumerate(zip(*data, strict=True)):
            trainer.append(tokens, labels, number % 4)
        trainer.train(str(tmp_path / "model.crfsuite"), holdout=3)
        logs.append(trainer.logparser.last_iteration)
    for name in ("item_accuracy", "instance_accuracy"):
        assert logs[0][name] == logs[1][name]
    for name in ("avg_precision", "avg_recall", "avg_f1"):
        assert logs[0][name] == pytest.approx(logs[1][name], abs=1e-6)
    for label, score in logs[1]["scores"].items():
        assert logs[0]["scores"][label][:3] == score[:3]


def test_parameters_are_those_of_python_crfsuite():
    for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow"):
        pair = [module.Trainer(algorithm, verbose=False) for module in (ours, theirs)]
        assert pair[0].params() == pair[1].params()
        assert pair[0].get_params() == pair[1].get_params()


def test_parameters_are_converted_and_checked():
    trainer = ours.Trainer()
    trainer.set("c1", "0.5")
    trainer.set("stop", 5)
    trainer.set("feature.possible_states", 1)
    found = [trainer.get(name) for name in ("c1", "period", "feature.possible_states")]
    assert found == [0.5, 5, True]
    for name, value, message in [
        ("c1", "x", "must be a finite number"),
        ("max_iterations", 1.5, "must be a whole number"),
        ("feature.possible_states", 2, "must be True, False"),
        ("linesearch", "zz", "linesearch='zz'"),
        ("nothing", 1, "has no parameter 'nothing'"),
    ]:
        with pytest.raises(ValueError, match=message):
            trainer.set(name, value)
    with pytest.raises(ValueError, match="no parameter 'foo'"):
        trainer.get("foo")


def test_an_appended_sequence_is_checked_at_once_and_not_kept():
    trainer = ours.Trainer(verbose=False)
    trainer.append([["a"]], ["X"])
    with pytest.raises(ValueError, match=r"number 1 to be appended: 1 items, but 2 labels"):
        trainer.append([["b"]], ["X", "Y"])
    with pytest.raises(TypeError, match="number 1 to be appended: sequence 0, position 1"):
        trainer.append([["b"], 3], ["X", "Y"])
    trainer.append([["c"]], ["Y"])
    trainer.train("")
    assert trainer.logparser.featgen_num_features == 2


def test_messages_can_go_elsewhere():
    class Quiet(ours.Trainer):
        lines = ()

        def message(self, message):
            self.lines += (message,)

    trainer = Quiet()
    trainer.append([["a"], ["b"]], ["X", "Y"])
    trainer.train("")
    assert len(trainer.lines) == 1 + len(trainer.logparser.iterations)
