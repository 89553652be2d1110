package browser

import (
	"context"
	"fmt"
	"strings"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
	"mcpagents/internal/provider/browser/lease"
)

// verify decides on the answer to a browser call. It is held until the browser
// proves to be the one that the call went to.
func (b *bridge) verify(r *request) {
	g := r.generation
	if g == nil || g != b.lease {
		b.replace(r, "the browser of this call was given back or lost while it ran")
		return
	}
	env := r.native.env
	switch {
	case env.Error == nil && !isObject(env.Result):
		r.native = nil
		b.distrust([]*request{r}, "its result is malformed")
	case connectFailed(env.Result):
		b.askStatus(r)
	default:
		b.identify(func(id string, err error) { b.verified(r, g, id, err) })
	}
}

// verified takes what the browser calls itself now.
func (b *bridge) verified(r *request, g *generation, id string, err error) {
	if b.Open[r.Key] != r {
		return
	}
	if b.lease != g {
		b.replace(r, "the browser of this call was given back or lost while its result was verified")
		return
	}
	why := difference(g.identity, id, err)
	if why == "" {
		b.deliver(r)
		return
	}
	b.replace(r, why)
	b.disprove(why)
}

// askStatus decides on a result which says that the downstream cannot reach the
// browser: whether the lease is at fault is what the lessor knows.
func (b *bridge) askStatus(r *request) {
	g := r.generation
	b.Outside(func(ctx context.Context) func() {
		state, err := b.cfg.Lessor.Status(ctx, g.record)
		return func() { b.statusEnded(r, g, state, err) }
	})
}

func (b *bridge) statusEnded(r *request, g *generation, state lease.State, err error) {
	switch {
	case b.Open[r.Key] != r || b.Outcome != nil:
	case b.lease != g:
		b.replace(r, "the browser of this call was given back or lost while its result was verified")
	case state == lease.Lost:
		b.replace(r, "the lease of the browser is gone")
		b.leaseLost()
	default:
		if state == lease.Unknown {
			b.Log.Warn(fmt.Sprintf("browser lease status is unknown; passing the error on as it is: %v", err))
		}
		b.deliver(r)
	}
}

// deliver passes the native answer on, byte for byte.
func (b *bridge) deliver(r *request) {
	b.Settle(r)
	b.Native(r.native.piece, r.Framed)
}

// replace answers a browser call that the downstream has got: its outcome is
// not known, whatever the answer says.
func (b *bridge) replace(r *request, why string) {
	var native []byte
	if r.native != nil {
		native = r.native.env.Result
	}
	b.RespondRaw(r, replacedAfter(native, why))
}

// distrust answers calls whose results cannot be passed on, and gives up the
// browser that they ran in.
func (b *bridge) distrust(calls []*request, why string) {
	current := false
	for _, r := range calls {
		current = current || r.generation != nil && r.generation == b.lease
		b.replace(r, why)
	}
	if current {
		b.disprove(why)
	}
}

// overdue fails a request whose deadline passed. A browser call may hold the
// downstream for good, as its calls run one after another.
func (b *bridge) overdue(r *request) {
	switch {
	case r.browser && r.Forwarded && r.native != nil:
		// The downstream is well, only nobody can tell in time whether to trust it.
		b.replace(r, "its result could not be verified before the "+b.hardTimeout())
	case r.cancelled:
		b.Settle(r) // it need not be answered
	case r.browser && r.Forwarded:
		b.Log.Warn("a browser call reached its hard timeout; starting chrome-devtools-mcp anew")
		b.replace(r, "this call had no answer at its "+b.hardTimeout())
		b.unstick()
	default:
		if !b.Withdraw(r) {
			b.Suppress(r)
			if r.Method != "initialize" && b.Phase == proxy.Running { // MCP forbids to cancel that
				b.Child.Input.Write(proxy.Cancel(r.ID, prefix+b.hardTimeout()))
			}
		}
		b.RespondError(r, mcp.CodeAborted, prefix+fmt.Sprintf("browser pass-through request hard timeout; it had no answer within %s and was not replayed", b.cfg.Times.Hard))
		b.Pump()
	}
}

func (b *bridge) hardTimeout() string {
	return fmt.Sprintf("hard timeout (%gs)", b.cfg.Times.Hard.Seconds())
}

// unstick starts the downstream anew: beside the browser if there is one, and
// once there is one if that is being got.
func (b *bridge) unstick() {
	switch b.state {
	case ready, checking:
		b.step(stuck)
	case provisioning:
		b.hung = true
	case cold, releasing:
		b.restart(b.port, func(err error) {
			if err != nil {
				b.refuseHeld(provisioningFailed(notStarted(err)))
			}
		})
	}
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// connectFailed reports whether a result says that the downstream could not
// connect to its browser.
func connectFailed(result []byte) bool {
	at, ok := mcp.Lookup(result, "isError")
	if !ok || string(at.Of(result)) != "true" {
		return false
	}
	var text strings.Builder
	at, _ = mcp.Lookup(result, "structuredContent", "content")
	s, _ := mcp.Text(at.Of(result))
	text.WriteString(s)
	at, _ = mcp.Lookup(result, "content")
	for _, part := range mcp.Elements(result, at) {
		raw := part.Of(result)
		at, _ := mcp.Lookup(raw, "text")
		s, _ := mcp.Text(at.Of(raw))
		text.WriteString("\n" + s)
	}
	said := strings.ToLower(text.String())
	return strings.Contains(said, "could not connect to chrome") && strings.Contains(said, "failed to fetch browser websocket url")
}
