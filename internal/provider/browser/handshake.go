package browser

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/provider/browser/lease"
)

// phase says where the downstream stands.
type phase uint8

const (
	absent    phase = iota // there is none: the handshake is answered here, a call starts one
	launching              // it is being started
	opening                // it has our initialize but not answered it
	running                // it gets what comes
	closing                // one is being killed: a call then starts another one
)

// knownTools is the tools/list result of chrome-devtools-mcp 1.11.0, for a
// client that asks before one runs.
//
//go:embed tools.json
var knownTools []byte

// launch starts a downstream. At most one launch is under way.
func (b *bridge) launch() {
	ctx, stop := context.WithCancel(b.ctx)
	b.stopLaunch = stop
	b.phase = launching
	b.sessions++
	port := b.port
	b.outside(func() func() {
		child, port, err := b.cfg.start(ctx, port)
		return func() { b.launchEnded(child, port, err) }
	})
}

// launchEnded gives a new child what waits for it. A client that has had its
// answer to initialize does not send it again, so the child gets the saved one
// under an id of ours first.
func (b *bridge) launchEnded(child *lease.Child, port int, err error) {
	b.stopLaunch()
	switch {
	case b.verdict != nil && err == nil:
		b.session = newSession(child, b.sessions) // the shutdown closes it
		return
	case b.verdict != nil:
		return
	case err != nil:
		b.fail(err)
		return
	}
	b.port = port
	s := newSession(child, b.sessions)
	b.session = s
	b.log.Info(fmt.Sprintf("browser passthrough: started chrome-devtools-mcp (source=%s, browser_url=%s)", child.Source, browserURL(port)))
	if b.initialize == nil {
		b.opened()
		return
	}
	b.phase = opening
	s.Initialized = true
	id, _ := mcp.Lookup(b.initialize, "id")
	s.Input.Write(mcp.Splice(b.initialize, mcp.Edit{At: id, With: mcp.Encode(b.privateID(""))}))
	b.alarms.After(b.cfg.Times.Hard, func() {
		if b.session == s && b.phase == opening {
			b.fail(fmt.Errorf("it has not answered initialize within %s", b.cfg.Times.Hard))
		}
	})
}

// privateID is the id of a request of ours to the session's child: the
// initialize, or what is named.
func (b *bridge) privateID(what string) string {
	return fmt.Sprintf("%s%s/%d%s", initializeIDs, b.cfg.Session, b.session.Number, what)
}

const listRequest = "/tools-list"

// fromPrivate takes the answer to a request of ours.
func (b *bridge) fromPrivate(key string, env mcp.Envelope) {
	switch {
	case key == "string:"+b.privateID("") && b.phase == opening:
		if env.Result == nil {
			b.fail(errors.New("it refused the client's initialize"))
			return
		}
		b.session.Served = true
		if b.initialized != nil {
			b.session.Input.Write(b.initialized)
		}
		b.opened()
	case key == "string:"+b.privateID(listRequest) && env.Result != nil:
		b.sawTools(env.Result, false)
		b.compareTools(b.annotated(env.Result))
	}
}

// opened completes the start of a child.
func (b *bridge) opened() {
	b.phase = running
	if b.listed != nil && b.initialize != nil {
		b.session.Input.Write(append(mcp.Encode(map[string]any{"jsonrpc": "2.0", "id": b.privateID(listRequest), "method": "tools/list"}), '\n'))
	}
	if then := b.restarted; then != nil {
		b.restarted = nil
		then(nil)
	}
	b.pump()
}

// restart replaces the downstream, on port, or on another one if port is 0, and
// calls then when the new one runs or could not be started.
func (b *bridge) restart(port int, then func(error)) {
	if b.phase == launching {
		then(errors.New("it is just being started"))
		return
	}
	b.hung = false
	b.restarted = then
	b.port = port
	b.dropOutstanding()
	switch {
	case b.session != nil:
		b.closeChild()
	case b.phase == absent:
		b.launch()
	}
}

// dropOutstanding settles what the downstream has got and will not answer any
// more. Questions of the handshake can be put again.
func (b *bridge) dropOutstanding() {
	clear(b.suppressed)
	var again []pending
	for _, r := range b.inOrder() {
		switch {
		case !r.forwarded || r.native != nil: // it waits, or has its answer
		case r.cancelled:
			b.settle(r)
		case r.browser:
			b.respondRaw(r, replacedAfter(nil, "the browser's tool server was started anew while this call ran"))
		case proxy.Handshake(r.method):
			r.forwarded = false
			again = append(again, pending{message: r.message, request: r})
			b.queueBytes += len(r.message.Raw)
		default:
			b.respondError(r, mcp.CodeAborted, "browser pass-through request aborted before responding (the browser's tool server was started anew)")
		}
	}
	b.queue = append(again, b.queue...)
}

// closeChild kills the child. What it is doing is lost.
func (b *bridge) closeChild() {
	s := b.session
	b.session, b.phase = nil, closing
	b.out.Finish()
	b.outside(func() func() {
		b.closeSession(s)
		return b.childClosed
	})
}

// childClosed starts the next child if somebody waits for it.
func (b *bridge) childClosed() {
	b.phase = absent
	if b.verdict != nil {
		return
	}
	if b.restarted != nil {
		b.launch()
		return
	}
	b.pump()
}

// fail answers everything that waits for a downstream which cannot serve. The
// next call tries again.
func (b *bridge) fail(err error) {
	b.log.Error("failed to start chrome-devtools-mcp: " + err.Error())
	b.phase = absent
	if b.session != nil {
		b.closeChild()
	}
	clear(b.suppressed) // their answers will not come
	if then := b.restarted; then != nil {
		b.restarted = nil
		then(err)
	}
	for _, p := range b.queue {
		if p.request != nil {
			b.keepInitialize(p.request)
		}
	}
	b.queue, b.queueBytes = nil, 0
	for _, r := range b.inOrder() {
		switch {
		case r.native != nil: // it is being verified
		case r.cancelled:
			b.settle(r)
		default:
			b.answerLocally(r, err)
		}
	}
}

// notStarted is the text for callers of a downstream that does not serve.
func notStarted(err error) string {
	return "the browser's tool server is not available: " + strings.TrimSuffix(err.Error(), ".") + ". The next call tries again."
}

// keepInitialize saves an initialize for children to come.
func (b *bridge) keepInitialize(r *request) {
	if r.method == "initialize" {
		b.initialize = proxy.WholeLine(r.message)
	}
}

// handshakeOverdue answers r here because the downstream has not. Its own
// answer, should it still come, is swallowed.
func (b *bridge) handshakeOverdue(r *request) {
	b.log.Warn(fmt.Sprintf("chrome-devtools-mcp has not answered %s within %s; answered without it", r.method, b.cfg.HandshakeTimeout))
	_, waited := b.withdraw(r)
	if !waited {
		b.suppressed[r.key] = struct{}{}
	}
	b.keepInitialize(r)
	if waited && r.method == "initialize" {
		b.keepInitialized()
	}
	b.answerLocally(r, nil)
	b.pump()
}

// keepInitialized takes the client's initialized notification out of what
// waits: it follows the saved initialize.
func (b *bridge) keepInitialized() {
	b.queue = slices.DeleteFunc(b.queue, func(p pending) bool {
		if p.initialized {
			b.queueBytes -= len(p.message.Raw)
		}
		return p.initialized
	})
}

// answerLocally answers r without the downstream, which is missing because of err.
func (b *bridge) answerLocally(r *request, err error) {
	switch r.method {
	case "initialize":
		b.respond(r, proxy.Initialize(b.initialize, b.cfg.Version))
	case "tools/list":
		if b.listed = b.list; b.listed == nil {
			b.listed = b.annotated(bytes.TrimSpace(knownTools))
		}
		b.respondRaw(r, b.listed)
	case "ping":
		b.respond(r, struct{}{})
	case "tools/call":
		b.respond(r, provisioningFailed(notStarted(err)))
	default:
		b.respondError(r, mcp.CodeMethodNotFound, "method not found")
	}
}
