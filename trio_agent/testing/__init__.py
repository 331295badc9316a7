"""The testing kit: scripted models, gates, recorders and checks, for applications and this library alike."""

from trio_agent.testing._cancel_everywhere import SweepReport as SweepReport
from trio_agent.testing._cancel_everywhere import cancel_everywhere as cancel_everywhere
from trio_agent.testing._check import check_transcript as check_transcript
from trio_agent.testing._check_events import check_events as check_events
from trio_agent.testing._gate import Gate as Gate
from trio_agent.testing._record import record as record
from trio_agent.testing._scheduling import deterministic_scheduling as deterministic_scheduling
from trio_agent.testing._scripted import Answer as Answer
from trio_agent.testing._scripted import AnswerFn as AnswerFn
from trio_agent.testing._scripted import ScriptedModel as ScriptedModel
from trio_agent.testing._scripted import ScriptedRequest as ScriptedRequest
from trio_agent.testing._scripted import tool_call as tool_call
from trio_agent.testing._sweep_attempt import Action as Action
from trio_agent.testing._sweep_attempt import Scenario as Scenario
