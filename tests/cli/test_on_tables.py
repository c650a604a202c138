"""Laws of `mercer cluster`, `embed`, `compare` and `test`: they say what the library says."""

import io
import json

import numpy as np
import polars
import pytest
from typer.testing import CliRunner

from mercer import KernelKMeans, KernelPCA, Nystroem, compare, describe_table, read_table
from mercer.cli import source
from mercer.cli.main import app
from mercer.theory import hsic, hsic_test, mmd_test

runner = CliRunner()


def run(*arguments, **more):
    return runner.invoke(app, [*map(str, arguments)], **more)


def trees(n=40):
    rng = np.random.default_rng(0)
    kind = np.repeat(["oak", "ash"], n // 2)
    height = np.where(kind == "oak", 20.0, 8.0) + rng.normal(size=n)
    girth = height / 8 + 0.1 * rng.normal(size=n)
    return polars.DataFrame(
        {"height": height, "girth": girth, "kind": kind, "colour": rng.choice(["g", "b"], n)}
    )


@pytest.fixture
def forest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trees().write_csv("trees.csv")
    return "trees.csv"


def written(result):
    assert result.exit_code == 0, result.stderr
    return polars.read_csv(io.BytesIO(result.stdout.encode()))


# ── cluster ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_clusters_are_those_of_the_machine(forest):
    result = run("cluster", forest, "--clusters", 3, "--leave-out", "kind", "--seed", 5)
    out = written(result)
    rows = trees().drop("kind")
    kernel = describe_table(rows, ranks=False).kernel
    model = KernelKMeans(kernel, 3, n_init=10, random_state=5).fit(rows)
    assert out.columns == [*trees().columns, "cluster", "distance"]
    assert out["cluster"].to_list() == model.labels_.tolist()
    np.testing.assert_array_equal(out["distance"], model.transform(rows)[np.arange(40), model.labels_])
    sizes = ", ".join(map(str, np.bincount(model.labels_)))
    assert f"3 clusters of {sizes} rows" in result.stderr
    assert "kernel: 1.0*RBF()" in result.stderr


def test_the_number_of_clusters_is_chosen_and_the_reason_is_said(forest):
    result = run("cluster", forest, "--leave-out", "colour", "--leave-out", "kind", "--json")
    found = json.loads(result.stdout)
    assert (found["schema"], found["clusters"], found["chosen"]) == ("mercer.cluster/1", 2, True)
    assert [s["clusters"] for s in found["strengths"]] == [1, 2, 3, 4]
    assert sorted(found["sizes"]) == [20, 20] and len(found["labels"]) == 40
    assert len(set(found["labels"][:20])) == len(set(found["labels"][20:])) == 1
    assert "2 is the largest that reaches 0.8" in result.stderr
    assert "Ranked" not in found["kernel"]
    # the share between the clusters, from all pairs
    rows = trees().drop("colour", "kind")
    K = describe_table(rows, ranks=False).kernel.resolved(rows)(rows)
    labels = np.array(found["labels"])
    total = np.trace(K) - K.sum() / 40
    blocks = [K[labels == j][:, labels == j] for j in (0, 1)]
    inside = sum(np.trace(block) - block.sum() / len(block) for block in blocks)
    assert found["explained"] == pytest.approx(1 - inside / total, rel=1e-9)


def test_a_file_is_written_whole_and_only_once(forest, tmp_path):
    assert run("cluster", forest, "-k", 2, "-o", "out.parquet", "--quiet").stderr == ""
    first = read_table("out.parquet").frame
    again = run("cluster", forest, "-k", 3, "-o", "out.parquet")
    assert again.exit_code == 1 and "--force" in again.stderr and again.stdout == ""
    assert read_table("out.parquet").frame.equals(first)
    assert run("cluster", forest, "-k", 3, "-o", "out.parquet", "--force").exit_code == 0
    assert read_table("out.parquet").frame["cluster"].max() == 2
    # a column that is there already keeps its name
    result = run("cluster", "out.parquet", "-k", 2, "--leave-out", "distance")
    assert written(result).columns[-2:] == ["cluster_2", "distance_2"]
    assert "'cluster_2'" in result.stderr


def test_sparse_rows_are_clustered_too(tmp_path):
    (tmp_path / "rows.svm").write_text("".join(f"{i % 2} 1:{5 * (i % 2)} 2:{i / 10}\n" for i in range(12)))
    out = written(run("cluster", tmp_path / "rows.svm", "-k", 2))
    assert out.columns == ["row", "target", "cluster", "distance"]
    assert out.group_by("target").agg(polars.col("cluster").n_unique())["cluster"].to_list() == [1, 1]


def test_many_rows_are_seen_by_landmarks_and_that_is_said(forest, monkeypatch):
    monkeypatch.setattr(source, "MOST_EXACT", 30)
    monkeypatch.setattr(source, "LANDMARKS", 12)
    rows = trees()
    kernel = describe_table(rows, ranks=False).kernel
    fewer = Nystroem(n_components=12, random_state=0)
    result = run("cluster", forest, "-k", 2)
    model = KernelKMeans(kernel, 2, n_init=10, random_state=0, approximation=fewer).fit(rows)
    assert written(result)["cluster"].to_list() == model.labels_.tolist()
    assert "approximated by" in result.stderr
    placed = written(run("embed", forest, "-d", 1))
    expected = KernelPCA(kernel, 1, random_state=0, approximation=fewer).fit_transform(rows)
    np.testing.assert_allclose(placed["component_1"], expected[:, 0], atol=1e-9)


# ── embed ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_coordinates_are_those_of_the_machine(forest, tmp_path):
    pytest.importorskip("matplotlib")
    result = run("embed", forest, "--leave-out", "kind", "-d", 2, "--picture", "p.svg", "--colour", "kind")
    out = written(result)
    rows = trees().drop("kind")
    model = KernelPCA(describe_table(rows, ranks=False).kernel, 2, random_state=0)
    expected = model.fit_transform(rows)
    np.testing.assert_allclose(out.select("component_1", "component_2").to_numpy(), expected, atol=1e-12)
    shares = ", ".join(f"{share:.1%}" for share in model.explained_variance_ratio_)
    assert shares in result.stderr
    assert (tmp_path / "p.svg").read_text().count("<svg") == 1
    found = json.loads(run("embed", forest, "--leave-out", "kind", "--json").stdout)
    assert found["schema"] == "mercer.embed/1" and found["dimensions"] == 2
    np.testing.assert_allclose(found["coordinates"], expected, atol=1e-12)


# ── tests ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_samples_by_a_column_have_the_p_value_of_the_library(forest):
    found = json.loads(
        run("test", "two-sample", forest, "--by", "kind", "--permutations", 99, "--json").stdout
    )
    rows = trees().drop("kind")
    kernel = describe_table(rows).kernel.resolved(rows)
    expected = mmd_test(rows[:20], rows[20:], kernel, n_permutations=99, random_state=0)
    assert found["schema"] == "mercer.test.two-sample/1"
    assert (found["p_value"], found["value"]) == (expected.p_value, expected.statistic)
    # between over total variance, by sums over the Gram matrix
    K = kernel(rows)
    total = np.trace(K) / 40 - K.mean()
    assert found["effect"] == pytest.approx(expected.statistic / 4 / total, rel=1e-9)
    values = expected.witness(rows)
    assert found["witness"][0]["row"] == int(np.argmax(values)) + 1
    assert found["witness"][-1]["row"] == int(np.argmin(values)) + 1
    assert {w["sample"] for w in found["witness"][:3]} == {"kind = oak"}


def test_two_tables_are_the_same_as_one_with_a_column(forest):
    trees()[:20].drop("kind").write_csv("oaks.csv")
    # other order, whole numbers in place of others
    trees()[20:].select("colour", "girth", "height").write_csv("ashes.csv")
    told = run("test", "two-sample", "oaks.csv", "ashes.csv", "--permutations", 49)
    one = run("test", "two-sample", forest, "--by", "kind", "--permutations", 49)
    assert told.exit_code == one.exit_code == 0, told.stderr
    assert told.stdout.splitlines()[0] == one.stdout.splitlines()[0]
    assert "oaks.csv: 20 rows; ashes.csv: 20 rows" in told.stdout
    assert "does not say how much they differ" in told.stdout
    assert "oaks.csv, row" in told.stdout


def test_independence_has_the_p_value_of_the_library(forest):
    arguments = ["test", "independence", forest, "--left", "height,girth", "--right", "colour"]
    found = json.loads(run(*arguments, "--permutations", 49, "--json", "--seed", 2).stdout)
    x, y = trees().select("height", "girth"), trees().select("colour")
    k, l = describe_table(x).kernel.resolved(x), describe_table(y).kernel.resolved(y)
    expected = hsic_test(x, y, k, l, n_permutations=49, random_state=2)
    assert (found["p_value"], found["value"]) == (expected.p_value, expected.statistic)
    scale = np.sqrt(hsic(x, x, k, k) * hsic(y, y, l, l))
    assert found["effect"] == pytest.approx(max(expected.statistic / scale, 0.0), abs=1e-12)
    text = run(
        "test", "independence", forest, "--left", "height", "--right", "girth", "--permutations", 49
    ).stdout
    assert "p = 0.02 (" in text and "nothing of cause and effect" in text


# ── compare ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_comparison_has_the_numbers_of_the_library(forest):
    arguments = [
        "compare",
        forest,
        "--target",
        "girth",
        "--kernels",
        "RBF().on('height')",
        "--leave-out",
        "kind",
    ]
    result = run(*arguments, "--kernels", "Linear().on('height')", "--folds", 3, "--repeats", 1, "--json")
    found = json.loads(result.stdout)
    expected = compare(
        trees(),
        "girth",
        kernels=["RBF().on('height')", "Linear().on('height')"],
        folds=3,
        repeats=1,
        leave_out=["kind"],
    )
    assert found["schema"] == "mercer.compare/1"
    for got, wanted in zip(found["candidates"], expected.candidates, strict=True):
        assert (got["name"], got["kernel"]) == (wanted.name, wanted.kernel)
        np.testing.assert_allclose(got["scores"], wanted.scores, rtol=1e-9)
        np.testing.assert_allclose(
            (got["low"], got["high"]), (wanted.low, wanted.high), rtol=1e-6, atol=1e-12
        )


# ── what goes wrong ─────────────────────────────────────────────────────────────────────────────────────────

BAD = {
    "gaps.csv": "y,x,s\n1,2.5,a\n,3.5,b\n2,1.5,a\n",
    "one.csv": "a,b\n1,2\n",
    "same.csv": "a,b\n1,1\n1,1\n1,1\n",
    "twice.csv": "a,a\n1,2\n",
    "empty.csv": "",
    "text.csv": "height,girth,kind,colour\nhigh,1,oak,g\nlow,2,ash,b\n",
    "fewer.csv": "height,kind\n1,oak\n2,ash\n",
}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["cluster", "."], 1, "is a directory"),
        (["cluster", "empty.csv"], 1, "empty.csv is empty"),
        (["cluster", "twice.csv"], 1, "has the name 'a' 2 times, in columns 1, 2"),
        (["cluster", "one.csv"], 1, "one.csv: no column of the table has anything to learn from"),
        (["embed", "same.csv"], 1, "same.csv: no column of the table has anything to learn from"),
        (["cluster", "trees.csv", "-k", "41"], 1, "has 40 rows: fewer than 41 clusters"),
        (["cluster", "trees.csv", "--leave-out", "heigt"], 1, "Did you mean 'height'?"),
        (["cluster", "trees.csv", "--kernel", "RBF("], 64, "(column 5)"),
        (["cluster", "trees.csv", "-o", "out.xls"], 1, "decides the format"),
        (["embed", "trees.csv", "--method", "tsne"], 64, "--method is pca"),
        (["embed", "trees.csv", "-d", "1", "--picture", "p.png"], 1, "a picture needs two components"),
        (["test", "two-sample", "trees.csv"], 64, "give two tables, or one table and --by"),
        (["test", "two-sample", "trees.csv", "--by", "height"], 1, "has 40 different values"),
        (["test", "two-sample", "gaps.csv", "--by", "y"], 1, "gaps.csv, line 3, has no value in column 'y'"),
        (["test", "two-sample", "trees.csv", "text.csv"], 1, "'height' has numbers in trees.csv and text"),
        (["test", "two-sample", "trees.csv", "fewer.csv"], 1, "fewer.csv has no column 'girth'"),
        (["test", "independence", "trees.csv", "--left", "kind", "--right", "kind"], 1, "on both sides"),
        (["compare", "trees.csv", "--target", "hight"], 1, "Did you mean 'height'?"),
        (["compare", "gaps.csv", "--target", "y"], 1, "gaps.csv, line 3, column 'y' has no value"),
        (["compare", "same.csv", "--target", "a"], 1, "same.csv, column 'a': the target is 1 in every row"),
        (["compare", "gaps.csv", "--target", "x", "--folds", "2"], 1, "3 rows are too few for 2 folds"),
        (["compare", "trees.csv", "--target", "kind", "--machines", "ridge"], 64, "are svc, gp; got 'ridge'"),
        (["compare", "trees.csv"], 64, "Missing option '--target'"),
        (["test"], 64, ""),
    ],
)
def test_what_cannot_be_done_gets_a_sentence_and_a_code(forest, tmp_path, arguments, code, words):
    for name, text in BAD.items():
        (tmp_path / name).write_text(text)
    before = sorted(p.name for p in tmp_path.iterdir())
    result = run(*arguments, "--quiet") if arguments != ["test"] else run("test")
    assert result.exit_code == code, result.stderr
    assert words in " ".join((result.stderr + result.stdout).replace("│", " ").split())
    assert result.stderr.count("Traceback") == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_ctrl_c_leaves_nothing_and_has_its_code(forest, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelKMeans, "fit", interrupted)
    result = run("cluster", forest, "-k", 2, "-o", "out.csv")
    assert result.exit_code == 130 and "interrupted; nothing was written" in result.stderr
    assert not (tmp_path / "out.csv").exists()
