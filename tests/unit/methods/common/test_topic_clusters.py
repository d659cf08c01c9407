import numpy as np

from tertulia.methods.common.topic_clusters import cluster, cluster_of, merge_sets


def test_merged_topics_are_data_weighted():
    M = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    merged = merge_sets(M, np.array([3.0, 1.0, 5.0]), np.array([0, 0, 2]), np.array([0, 2]))
    assert np.allclose(merged, [[0.75, 0.25], [0.5, 0.5]])


def test_clusters_are_numbered_as_they_are_merged():
    M = np.array([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9], [0.8, 0.2, 0.0], [0.0, 0.2, 0.8], [0.1, 0.9, 0.0]])
    assert cluster_of(M, 3).tolist() == [0, 1, 0, 1, 2]
    merged, weights = cluster(M, np.array([1.0, 1.0, 3.0, 1.0, 5.0]), 3)
    assert np.allclose(merged, [[0.825, 0.175, 0.0], [0.0, 0.15, 0.85], [0.1, 0.9, 0.0]])
    assert weights.tolist() == [4.0, 2.0, 5.0]
    assert cluster_of(M, 9).tolist() == [0, 1, 2, 3, 4]
