"""FLARE's Collab API in one process: its own apps, proxies and dispatchers, over a wire that hands messages over."""

from concurrent.futures import ThreadPoolExecutor

from nvflare.apis.signal import Signal
from nvflare.apis.workspace import Workspace
from nvflare.collab.api.app import ClientApp, ServerApp
from nvflare.collab.api.proxy import Proxy
from nvflare.collab.runtime.cell_dispatcher import CellDispatcher
from nvflare.collab.runtime.defs import CallHeaderKey
from nvflare.collab.runtime.dispatch import _call_app_method
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, ReturnCode
from nvflare.fuel.f3.cellnet.utils import make_reply
from nvflare.fuel.utils import fobs
from nvflare.fuel.utils.log_utils import get_obj_logger


class Wire:
    """Hands a call over as bytes, as FLARE's cells do, under the caller's name; `cut` sites are out of reach."""

    def __init__(self, caller, apps):
        self._caller, self._apps, self.cut = caller, apps, set()

    def get_fqcn(self):
        return self._caller

    def send_request(self, target, request, **_):
        if target in self.cut:
            return make_reply(ReturnCode.TARGET_UNREACHABLE)
        request.payload = fobs.loads(fobs.dumps(request.payload))
        request.headers[CallHeaderKey.AUTHENTICATED_CALLER] = self._caller
        reply = _call_app_method(request, self._apps[target], get_obj_logger(self))
        assert reply.get_header(MessageHeaderKey.RETURN_CODE) in (ReturnCode.OK, ReturnCode.PROCESS_EXCEPTION)
        return reply


class Job:
    """A job: the server's object, and one for each site, each in the workspace of its kit."""

    def __init__(self, kits, server_name, server, sites):
        self._pool, abort = ThreadPoolExecutor(8), Signal()
        self.apps = {"server": ServerApp(server), **{name: ClientApp(site) for name, site in sites.items()}}
        self.wires = {}
        for name, app in self.apps.items():
            app.name = name
            self.wires[name] = Wire(name, self.apps)
            proxies = {target: self._proxy(app, target, abort) for target in self.apps}
            workspace = Workspace(str(kits / (server_name if name == "server" else name)), name)
            app.setup(workspace, proxies["server"], [proxies[site] for site in sites], abort)

    def _proxy(self, app, target, abort):
        dispatcher = CellDispatcher(
            manager=None, engine=None, caller=app.name, cell=self.wires[app.name], target_fqcn=target,
            abort_signal=abort, thread_executor=self._pool,
        )  # fmt: skip
        interface = self.apps[target].get_collab_interface()
        proxy = Proxy(app, target, target, dispatcher, interface[""])
        for name in interface:
            if name:
                proxy.add_child(name, Proxy(app, f"{target}.{name}", "", dispatcher, interface[name]))
        return proxy

    def as_server(self, name="server"):
        """Be this participant, in the block."""
        app = self.apps[name]
        return app.new_context(caller=name, callee=name)

    def close(self):
        """What FLARE does when a job ends."""
        for name, app in self.apps.items():
            app.finalize(app.new_context(caller=name, callee=name, set_call_ctx=False))
        self._pool.shutdown()
