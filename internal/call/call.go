// Package call is a harness for pipelines: it starts this program's server as an
// MCP client would, calls one tool, and says by files, streams and the exit
// status what became of it. When it returns, nothing that it started is left.
package call

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpagents/internal/sandbox"
	"mcpagents/internal/scripted"
	"mcpagents/internal/version"
)

// Exit statuses of [Run].
const (
	StatusOK       = 0
	StatusError    = 1 // the tool, or what runs it, failed
	StatusUsage    = 2
	StatusDeadline = 124 // as timeout(1)
	// StatusInterrupted says that the context ended, and is no exit status: the
	// caller knows which signal it was.
	StatusInterrupted = -1
)

// Options are the settings of a call.
type Options struct {
	Tool     string
	Args     []string // key=value, typed by the tool's schema; @FILE and @- are read
	JSONArgs []string // key=JSON
	// Deadline bounds everything from the start to the answer; 0 means none.
	Deadline time.Duration
	// StopGrace is what the server may take to end its sandboxes.
	StopGrace time.Duration
	// JSON prints the whole result in place of its text.
	JSON bool
	// OutDir is a directory for diff.patch, result.json and call.log; it is made
	// if it is not there. Empty means none.
	OutDir string

	Binary   string   // absolute: this program
	Server   []string // the server's flags
	Provider string
	// Scripted is a scenario of the scripted model, which is then run for the
	// call on Runtime with Image; empty means none.
	Scripted string
	Runtime  sandbox.Runtime
	Image    string

	Dir            string // absolute: where the server starts
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Width is the number of columns of the terminal that Stderr is; 0 means
	// that it is none.
	Width int
}

// UsageError is a call that makes no sense.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// protocolVersion is what we ask for. With its latest version the SDK's client
// sends server/discover before initialize, which a Codex of today may leave
// without an answer.
const protocolVersion = "2025-06-18"

// errDeadline is the cause of a context whose deadline passed.
var errDeadline = errors.New("the deadline passed")

// answer is what a call came to: one of both.
type answer struct {
	result *mcp.CallToolResult
	err    error
}

// Run runs the call and returns the exit status.
func Run(ctx context.Context, o Options) int {
	begin := time.Now()
	report := newReporter(o.Stderr, o.Width, begin)
	args, err := parseArgs(o)
	if err != nil {
		return report.fail(err)
	}
	if o.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Deadline, errDeadline)
		defer cancel()
	}
	out, err := openOut(ctx, o, args)
	if err != nil {
		return report.fail(err)
	}
	report.log = out.log()
	stop := report.start()
	a := turn(ctx, o, args, report)
	stop()
	for _, err := range out.finish(ctx, a) {
		report.line("warning: " + err.Error())
	}
	status := present(ctx, o, a, report)
	if err := out.close(); err != nil {
		report.line("error: " + err.Error())
		return cmp.Or(status, StatusError)
	}
	return status
}

// present prints the answer and returns the exit status. The text of an error
// goes to stderr, so that stdout holds an answer or nothing.
func present(ctx context.Context, o Options, a answer, report *reporter) int {
	switch {
	case a.err != nil && errors.Is(context.Cause(ctx), errDeadline):
		report.line(fmt.Sprintf("error: no answer within %s (--deadline): the call was cancelled; what it wrote before is in the workspace", o.Deadline))
		return StatusDeadline
	case a.err != nil && ctx.Err() != nil:
		report.line("interrupted: the call was cancelled; what it wrote before is in the workspace")
		return StatusInterrupted
	case a.err != nil:
		return report.fail(a.err)
	}
	text := textOf(a.result)
	switch {
	case o.JSON:
		b, err := json.Marshal(a.result)
		if err != nil {
			return report.fail(err)
		}
		text = string(b)
	case a.result.IsError:
		report.line("error: " + text)
		return StatusError
	}
	if _, err := io.WriteString(o.Stdout, strings.TrimSuffix(text, "\n")+"\n"); err != nil {
		return report.fail(fmt.Errorf("write the answer: %w", err))
	}
	if a.result.IsError {
		return StatusError
	}
	return StatusOK
}

func textOf(r *mcp.CallToolResult) string {
	var parts []string
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// turn starts what the call needs, runs it, and ends all of it.
func turn(ctx context.Context, o Options, args []argument, report *reporter) (a answer) {
	flags := o.Server
	if o.Scripted != "" {
		m, err := scripted.Start(ctx, scripted.Options{Runtime: o.Runtime, Image: o.Image, Scenario: o.Scripted, Binary: o.Binary})
		if err != nil {
			return answer{err: err}
		}
		defer func() {
			if err := m.Close(ctx); err != nil {
				report.line("warning: end the scripted model: " + err.Error())
			}
		}()
		flags = append(slices.Clip(flags), m.Flags(o.Provider)...)
	}
	server, err := startServer(o.Binary, flags, o.Dir, report)
	if err != nil {
		return answer{err: err}
	}
	// An end of ours must not wait for an answer of the server's.
	unhook := context.AfterFunc(ctx, server.terminate)
	session, err := newClient(report).Connect(ctx, server.transport(), &mcp.ClientSessionOptions{ProtocolVersion: protocolVersion})
	if err == nil {
		a = callTool(ctx, o.Tool, args, session)
	} else {
		a = answer{err: fmt.Errorf("start the server: %w", err)}
	}
	ended := server.stop(session, !unhook(), o.StopGrace)
	if a.err != nil && ctx.Err() == nil && ended != nil {
		a.err = fmt.Errorf("%w (the server ended: %w)", a.err, ended)
	}
	return a
}

func newClient(report *reporter) *mcp.Client {
	impl := &mcp.Implementation{Name: "mcp-agents-call", Version: version.Version}
	return mcp.NewClient(impl, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			report.progress(req.Params.Message)
		},
	})
}

func callTool(ctx context.Context, name string, args []argument, session *mcp.ClientSession) answer {
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		return answer{err: fmt.Errorf("list the tools: %w", err)}
	}
	arguments, err := typed(name, list.Tools, args)
	if err != nil {
		return answer{err: err}
	}
	params := &mcp.CallToolParams{Name: name, Arguments: arguments}
	params.SetProgressToken("call")
	result, err := session.CallTool(ctx, params)
	if err != nil {
		return answer{err: plain(name, err)}
	}
	return answer{result: result}
}

// plain is a JSON-RPC error with the data that says which argument is at fault.
func plain(name string, err error) error {
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) && len(rpc.Data) > 0 {
		return fmt.Errorf("%w: %s", err, rpc.Data)
	}
	return fmt.Errorf("call %s: %w", name, err)
}

// workDir is the directory that the call is about.
func workDir(o Options, args []argument) string {
	for _, a := range args {
		if dir, ok := a.value.(string); ok && a.key == "cwd" && filepath.IsAbs(dir) {
			return dir
		}
		if a.key == "cwd" && filepath.IsAbs(a.text) {
			return a.text
		}
	}
	return o.Dir
}
