package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

// launch starts a child in the background. At most one launch is under way.
func (b *bridge) launch(ctx context.Context) {
	ctx, b.stopLaunch = context.WithCancel(ctx)
	b.phase = launching
	b.launches++
	go func() {
		child, err := b.cfg.Launch(ctx)
		b.launched <- launchResult{child, err}
	}()
}

// launchEnded gives a new child what waits for it. A client that has had its
// answer to initialize does not send it again, so the child gets the saved one
// under an id of ours first.
func (b *bridge) launchEnded(r launchResult) {
	b.stopLaunch()
	if r.err != nil {
		b.fail(r.err)
		return
	}
	s := newSession(r.child, b.launches)
	b.session = s
	if b.initialize == nil {
		b.phase = running
		b.sendWaiting()
		return
	}
	b.phase = opening
	s.Initialized = true
	id, _ := mcp.Lookup(b.initialize, "id")
	s.Input.Write(mcp.Splice(b.initialize, mcp.Edit{At: id, With: mcp.Encode(s.privateID("initialize"))}))
	for _, p := range b.waiting {
		b.armReadiness(p.request)
	}
}

// privateID is the id of a request of ours to the child.
func (s *session) privateID(what string) string {
	return fmt.Sprintf("%scodex/%s/%d", privateIDs, what, s.Number)
}

// fromPrivate takes the answer to a request of ours.
func (b *bridge) fromPrivate(key string, env mcp.Envelope) {
	s := b.session
	switch key {
	case "string:" + s.privateID("initialize"):
		if env.Result == nil {
			b.fail(&LaunchError{Text: "Codex refused the client's initialize"})
			return
		}
		s.Served = true
		b.alarms.Cancel(s.readiness)
		b.opened()
	case "string:" + s.privateID("tools-list"):
		b.compareTools(env.Result)
	}
}

// opened completes the handshake with a child that was started late.
func (b *bridge) opened() {
	s := b.session
	b.phase = running
	if b.initialized != nil {
		s.Input.Write(b.initialized)
	}
	if b.listed != nil {
		s.Input.Write(encodeLine(map[string]any{"jsonrpc": "2.0", "id": s.privateID("tools-list"), "method": "tools/list"}))
	}
	b.sendWaiting()
}

func encodeLine(v any) []byte { return append(mcp.Encode(v), '\n') }

func (b *bridge) sendWaiting() {
	for _, p := range b.takeWaiting() {
		b.sendToChild(p)
	}
}

// compareTools tells the client when Codex's tools differ from those that it
// was given here. The argument is a tools/list result of Codex, nil if there
// is none.
func (b *bridge) compareTools(result []byte) {
	if b.listed == nil || result == nil {
		return
	}
	if !sameTools(b.listed, b.tools.curate(result, mcp.Span{Start: 0, End: len(result)})) {
		b.own(proxy.Notification("notifications/tools/list_changed", nil), b.framed, nil)
	}
	b.listed = nil
}

// keepInitialize saves an initialize for children to come.
func (b *bridge) keepInitialize(p pending) {
	if p.request != nil && p.request.method == "initialize" {
		b.initialize = proxy.WholeLine(p.message)
	}
}

// handshakeOverdue answers r here because Codex has not. Its own answer, should
// it still come, is swallowed.
func (b *bridge) handshakeOverdue(r *request) {
	b.log.Warn(fmt.Sprintf("codex has not answered %s within %s; answered without it", r.method, b.cfg.HandshakeTimeout))
	if p, ok := b.withdraw(r); !ok {
		b.suppress(r)
	} else if r.method == "initialize" {
		b.keepInitialize(p)
		b.keepInitialized()
	}
	b.answerLocally(r, nil)
}

// keepInitialized takes the client's initialized notification out of what
// waits: it follows the saved initialize.
func (b *bridge) keepInitialized() {
	b.waiting = slices.DeleteFunc(b.waiting, func(p pending) bool {
		if !p.initialized {
			return false
		}
		b.waitingBytes -= len(p.message.Raw)
		return true
	})
}

// armReadiness limits how long a call waits for a child that has not answered
// its initialize. Without a call such a child may take its time.
func (b *bridge) armReadiness(r *request) {
	s := b.session
	if r == nil || r.method != "tools/call" || s == nil || s.Served || !s.Initialized || s.readiness != nil {
		return
	}
	s.readiness = b.alarms.After(b.cfg.HandshakeTimeout, func() { b.fail(b.notReady()) })
}

func (b *bridge) notReady() error {
	return &LaunchError{Text: fmt.Sprintf("Codex started but has not answered initialize within %s; "+
		"if it is only slow, raise --handshake_timeout", b.cfg.HandshakeTimeout)}
}

// fail answers everything that is open because no Codex is there to serve it,
// and destroys the child if there is one. The next call tries again.
func (b *bridge) fail(err error) {
	b.log.Error("failed to start codex: " + err.Error())
	b.phase = absent
	if s := b.session; s != nil {
		b.alarms.Cancel(s.readiness)
		b.session, b.phase = nil, closing
		go func() {
			b.closeSession(s)
			b.closed <- struct{}{}
		}()
	}
	for _, p := range b.takeWaiting() {
		b.keepInitialize(p)
	}
	clear(b.suppressed) // their answers will not come
	b.out.Finish()
	for _, r := range b.inOrder() {
		switch {
		case r.poll != nil: // of a job, which has its own end
		case r.state.wanted():
			b.answerLocally(r, err)
		case r.job != nil:
			b.settle(r)
			r.job.Canceled("canceled")
		default:
			b.settle(r)
		}
	}
}

// childClosed takes the end of a failed child, whose login is written back now:
// a call that came meanwhile starts the next one.
func (b *bridge) childClosed(ctx context.Context) {
	b.phase = absent
	if len(b.waiting) > 0 {
		b.launch(ctx)
	}
}

// answerLocally answers r without Codex, which is missing because of err.
func (b *bridge) answerLocally(r *request, err error) {
	switch r.method {
	case "initialize":
		b.respond(r, proxy.Initialize(b.initialize, b.cfg.Version))
	case "tools/list":
		b.listed = b.tools.local()
		b.respond(r, json.RawMessage(b.listed))
	case "ping":
		b.respond(r, struct{}{})
	case "tools/call":
		text := "Codex is not available: " + remedy(err) + ". The next call tries again."
		if r.job != nil {
			b.settle(r)
			r.job.Fail(text, "")
			return
		}
		b.respond(r, toolError("mcp-agents: "+text))
	default:
		b.respondError(r, mcp.CodeMethodNotFound, "Method not found")
	}
}

// toolError is a tool's result that says what went wrong.
func toolError(message string) any {
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	return struct {
		Content []content `json:"content"`
		IsError bool      `json:"isError"`
	}{[]content{{"text", message}}, true}
}
