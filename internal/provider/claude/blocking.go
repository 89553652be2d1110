package claude

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mcpagents/internal/mcp/toolserver"
	"mcpagents/internal/provider/oneshot"
)

// attempts is how often a call is tried whose answer is blank.
const attempts = 2

// blockingTool is claude_code.
func (p *Provider) blockingTool() toolserver.Tool {
	return toolserver.Tool{
		Name: "claude_code",
		Description: fmt.Sprintf("Runs Claude Code (model %s, effort %s) with a prompt on its stdin, in a sandbox of its own that sees the "+
			"workspace, and returns the answer. Takes prompt and timeout_ms only. For work that may take longer than you wait, use "+
			"claude-start.", p.cfg.Model, p.cfg.Effort),
		InputSchema: oneshot.Schema(program, p.cfg.Timeout),
		Call:        p.callBlocking,
		Heartbeat:   func(elapsed time.Duration) string { return "Claude: still running (" + seconds(elapsed) + ")" },
	}
}

func failure(text string) toolserver.Result { return toolserver.Result{Text: text, IsError: true} }

// callBlocking runs Claude Code and waits for its answer.
func (p *Provider) callBlocking(ctx context.Context, call toolserver.Call) (toolserver.Result, error) {
	a := oneshot.ParseArguments(call.Arguments, p.cfg.Timeout)
	if len(a.Ignored) > 0 {
		p.log.Info("tools/call: ignoring unsupported args: " + strings.Join(a.Ignored, ", "))
	}
	if strings.TrimSpace(a.Prompt) == "" {
		return failure("Missing required argument: prompt"), nil
	}
	if p.cfg.RootsErr != nil {
		return failure(p.cfg.RootsErr.Error()), nil
	}
	if a.Timeout <= 0 {
		return p.exhausted(a.Timeout), nil
	}
	p.log.Info("tools/call: running " + program + " …")
	ctx, cancel := context.WithTimeoutCause(ctx, a.Timeout, oneshot.ErrTimeout)
	defer cancel()
	r, err := p.runBlocking(ctx, a)
	if err == nil {
		p.log.Info("tools/call: done")
	}
	return r, err
}

func (p *Provider) exhausted(timeout time.Duration) toolserver.Result {
	p.log.Warn("tools/call: timeout budget exhausted", "provider", program, "timeout_ms", timeout.Milliseconds())
	return failure(program + " failed: timeout budget exhausted before retry")
}

func (p *Provider) runBlocking(ctx context.Context, a oneshot.Arguments) (toolserver.Result, error) {
	root := p.cfg.Roots.Default() // the one that holds the startup directory, else the first
	argv := blockingArgv(p.cfg.Model, p.cfg.Effort, !p.cfg.TrustWorkspace, p.hidden(root, root))
	start := time.Now()
	for n := 1; ; n++ {
		began := time.Now()
		command, err := p.command(ctx, argv, root, root, p.cfg.ReadOnly)
		if err != nil && ctx.Err() == nil {
			return failure(err.Error()), nil
		}
		var out oneshot.Output
		if err == nil {
			out, err = p.cfg.Launcher.Run(ctx, command, a.Prompt)
		}
		if err != nil {
			text, err := oneshot.StartFailure(ctx, program, err)
			return failure(text), err
		}
		answer, blank := p.judge(out, a.Timeout)
		if !blank {
			return answer, nil
		}
		fields := []any{"provider", program, "attempt", fmt.Sprintf("%d/%d", n, attempts), "duration_ms", time.Since(began).Milliseconds(),
			"timeout_ms", a.Timeout.Milliseconds(), "stdout_bytes", len(out.Stdout), "stderr_bytes", len(out.Stderr)}
		if n == attempts {
			p.log.Warn("tools/call: empty output after retries", "provider", program, "attempts", n, "elapsed_ms",
				time.Since(start).Milliseconds(), "timeout_ms", a.Timeout.Milliseconds(), "stdout_bytes", len(out.Stdout), "stderr_bytes", len(out.Stderr))
			return failure(program + " returned empty output twice (exit 0): it printed no answer, as it does where it cannot write its temporary files"), nil
		}
		p.log.Warn("tools/call: empty output; retrying", fields...)
		if ctx.Err() != nil {
			return p.exhausted(a.Timeout), nil
		}
	}
}

// judge makes the answer of what the CLI left: its result counts, then how it
// ended, then whether it said anything. Words in a text never count: a good
// answer may be about errors.
func (p *Provider) judge(out oneshot.Output, budget time.Duration) (answer toolserver.Result, blank bool) {
	failed := out.Failure(program, budget)
	if out.Overflow != "" {
		return failure(failed), false
	}
	said := out.Text()
	r, ok := parseResult(said)
	switch {
	case ok && r.isError:
		p.log.Warn("tools/call: provider returned error payload", "provider", program)
		if text := strings.TrimSpace(r.text); text != "" {
			return failure(text), false
		}
		return failure(program + " returned is_error=true"), false
	case ok && strings.TrimSpace(r.text) != "":
		return p.cut(r.text), false
	case failed != "":
		return failure(failed), false
	case ok || strings.TrimSpace(said) == "":
		return toolserver.Result{}, true
	}
	return p.cut(said), false
}

// cut shortens an answer that clients would refuse and keeps the whole of it as
// a job, where its rest is read page by page.
func (p *Provider) cut(answer string) toolserver.Result {
	short, chars := oneshot.Cut(answer, p.cfg.MaxChars)
	if chars <= p.cfg.MaxChars {
		return toolserver.Result{Text: answer}
	}
	note := fmt.Sprintf("\n\n[mcp-agents: this answer has %d characters and is cut after %d. ", chars, p.cfg.MaxChars)
	if id, ok := p.jobs.keep(answer); ok {
		note += fmt.Sprintf("The rest: call claude-result with jobId %s and offset %d.]", id, p.cfg.MaxChars)
	} else {
		note += "The rest is lost, because no more jobs can be kept: repeat the call with claude-start and read it with claude-result.]"
	}
	return toolserver.Result{Text: short + note}
}
