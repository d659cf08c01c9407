from tertulia.api.federated import FTM as FTM
from tertulia.api.federated import PCTD as PCTD
from tertulia.api.federated import Alone as Alone
from tertulia.api.federated import Centralised as Centralised
from tertulia.api.federated import Consensus as Consensus
from tertulia.api.federated import FedLDA as FedLDA
from tertulia.api.federated import GFedNTM as GFedNTM
from tertulia.api.federated import NonCollaborative as NonCollaborative
from tertulia.api.federated import Pooled as Pooled
from tertulia.api.federated import PrivateTopics as PrivateTopics
from tertulia.api.federated import federate as federate
from tertulia.api.lda import LDA as LDA
from tertulia.api.neural import CombinedTM as CombinedTM
from tertulia.api.neural import ProdLDA as ProdLDA
from tertulia.api.neural import ZeroShotTM as ZeroShotTM
from tertulia.applications.classification import TopicFeatures as TopicFeatures
from tertulia.applications.topic_numbers import choose_topics as choose_topics
from tertulia.corpus import Corpus as Corpus
from tertulia.corpus import TextOptions as TextOptions
from tertulia.corpus import Vocabulary as Vocabulary
from tertulia.corpus import read as read
from tertulia.errors import TertuliaError as TertuliaError
from tertulia.models import Topics as Topics
from tertulia.runs.one_machine import best_for as best_for
from tertulia.runs.one_machine import load as load
from tertulia.runs.results import FederatedTopics as FederatedTopics

__version__: str
