package browser

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"mcpagents/internal/mcp"
	"mcpagents/internal/mcp/proxy"
)

const (
	// maxStderrLine is where a line of the downstream's stderr is cut for the log.
	maxStderrLine = 8 << 10
	// tailLines is how many of them are kept for the error that a caller gets
	// when the downstream ends before it has answered initialize.
	tailLines = 5
)

// knownTools is the tools/list result of chrome-devtools-mcp 1.11.0, for a
// client that asks before one runs.
//
//go:embed tools.json
var knownTools []byte

// Launch starts a downstream.
func (b *bridge) Launch(ctx context.Context) (proxy.Started, error) {
	child, port, err := b.cfg.start(ctx, b.port)
	if err != nil {
		return proxy.Started{}, err
	}
	process := proxy.Process{Stdin: child.Stdin, Stdout: child.Stdout, Stderr: child.Stderr, Wait: child.Wait, Close: child.Close}
	return proxy.Started{Process: process, ReadStderr: readLines, Accept: func(*proxy.Run) {
		b.port, b.tail, b.long = port, nil, nil
		b.Log.Info(fmt.Sprintf("browser passthrough: started chrome-devtools-mcp (source=%s, browser_url=%s)", child.Source, browserURL(port)))
	}}, nil
}

// privateID is the id of a request of ours to the child of the number.
func (b *bridge) privateID(what string, number int) string {
	id := fmt.Sprintf("%s%s/%d", initializeIDs, b.cfg.Session, number)
	if what != "initialize" {
		id += "/" + what
	}
	return id
}

// readLines yields the lines of r, each cut at maxStderrLine.
func readLines(r io.Reader, yield func([]byte) bool) {
	lines := bufio.NewReaderSize(r, maxStderrLine)
	for cut := false; ; {
		line, more, err := lines.ReadLine()
		if err != nil {
			return
		}
		if !cut && !yield([]byte(string(line))) {
			return
		}
		cut = more
	}
}

// Stderr logs a line of the downstream.
func (b *bridge) Stderr(line []byte) {
	text := strings.TrimRight(strings.ToValidUTF8(string(line), "\ufffd"), " \t\r")
	if b.tail = append(b.tail, text); len(b.tail) > tailLines {
		b.tail = b.tail[1:]
	}
	b.Log.Info("[chrome-devtools] " + text)
}

// NotServed adds the last lines of stderr.
func (b *bridge) NotServed() error {
	err := b.Defaults.NotServed()
	if tail := strings.TrimSpace(strings.Join(b.tail, "\n")); tail != "" {
		return fmt.Errorf("%w: %s", err, tail)
	}
	return err
}

// restart replaces the downstream, on port, or on another one if port is 0, and
// calls then when the new one runs or could not be started.
func (b *bridge) restart(port int, then func(error)) {
	if b.Phase == proxy.Launching {
		then(proxy.ErrStarting)
		return
	}
	b.hung = false
	b.port = port
	b.dropOutstanding()
	b.Restart(then)
}

// dropOutstanding settles what the downstream has got and will not answer any
// more. Questions of the handshake can be put again.
func (b *bridge) dropOutstanding() {
	var again []*request
	for _, r := range b.InOrder() {
		switch {
		case !r.Forwarded || r.native != nil: // it waits, or has its answer
		case r.cancelled:
			b.Settle(r)
		case r.browser:
			b.RespondRaw(r, replacedAfter(nil, "the browser's tool server was started anew while this call ran"))
		case proxy.Handshake(r.Method):
			again = append(again, r)
		default:
			b.RespondError(r, mcp.CodeAborted, prefix+"browser pass-through request aborted before responding (the browser's tool server was started anew)")
		}
	}
	b.Requeue(again)
}

// Failed answers what waits for a downstream that cannot serve.
func (b *bridge) Failed(r *request, err error) {
	switch {
	case r.native != nil: // it is being verified
	case r.cancelled:
		b.Settle(r)
	default:
		b.AnswerLocally(r, err)
	}
}

// Unavailable answers a call that no downstream can serve.
func (b *bridge) Unavailable(r *request, err error) {
	b.Respond(r, provisioningFailed(notStarted(err)))
}

// notStarted is the text for callers of a downstream that does not serve.
func notStarted(err error) string {
	return "the browser's tool server is not available: " + strings.TrimSuffix(err.Error(), ".") + ". The next call tries again."
}

// ClientGone ends the session after the client's last message. A client that put
// the questions of its handshake at once still reads the answers; a call is not
// waited for, since its browser is given back.
func (b *bridge) ClientGone() {
	gone := proxy.Outcome{Reason: "client disconnected", Emit: true}
	if !b.expectsAnswers() {
		b.Finish(gone)
		return
	}
	b.Clock.After(proxy.DrainTime, func() { b.Finish(gone) })
}

// expectsAnswers reports whether a question of the handshake is open.
func (b *bridge) expectsAnswers() bool {
	for _, r := range b.Open {
		if proxy.Handshake(r.Method) {
			return true
		}
	}
	return false
}

// Abort answers every request that is still open.
func (b *bridge) Abort(reason string) {
	for _, r := range b.InOrder() {
		switch {
		case b.Open[r.Key] != r: // answered meanwhile
		case r.cancelled:
			b.Settle(r)
		case r.browser && r.Forwarded:
			b.replace(r, "the bridge ended ("+reason+") before its result was verified")
		default:
			b.RespondError(r, mcp.CodeAborted, prefix+"browser pass-through request aborted before responding ("+reason+")")
		}
	}
}
