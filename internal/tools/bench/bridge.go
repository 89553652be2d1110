package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// frameRounds is how many pings are measured beside calls.
const frameRounds = 300

// frames: what a frame takes more through front end and container while calls
// are open, each of which says something every 20 ms, beside the same calls in
// an attached container alone. A ping there and back is two frames.
func (b *bench) frames(ctx context.Context) error {
	for _, calls := range []int{1, 8, 64} {
		bare, err := b.pingedBeside(ctx, b.bareFake(), calls, false)
		if err != nil {
			return fmt.Errorf("bare: %w", err)
		}
		for _, progress := range []bool{false, true} {
			ours, err := b.pingedBeside(ctx, b.frontEnd("docker", b.fakeImage), calls, progress)
			if err != nil {
				return fmt.Errorf("ours: %w", err)
			}
			name := fmt.Sprintf("frame beside %d calls", calls)
			if progress {
				name += " that tell progress"
			}
			b.ratio(name, ours/2, bare/2, "")
		}
	}
	return nil
}

// pingedBeside is the median of pings while calls are open.
func (b *bench) pingedBeside(ctx context.Context, cmd *exec.Cmd, calls int, progress bool) (time.Duration, error) {
	s, err := open(ctx, cmd)
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.kill() }() // its calls have not ended
	for i := range calls {
		var meta map[string]any
		if progress {
			meta = map[string]any{"progressToken": i}
		}
		if err := s.call(100+i, "codex", b.turn(`[{"do":"ticks","type":"exec_command_begin","ms":20,"code":100000}]`), meta); err != nil {
			return 0, err
		}
	}
	if err := s.until(ctx, fmt.Appendf(nil, `"requestId":%d`, 100+calls-1)); err != nil { // all speak
		return 0, err
	}
	var times []time.Duration
	for i := range frameRounds {
		id := strconv.Itoa(1000 + i)
		begin := time.Now()
		if _, err := io.WriteString(s.in, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`+"\n"); err != nil {
			return 0, err
		}
		if err := s.until(ctx, []byte(`"id":`+id+`,"result"`)); err != nil {
			return 0, err
		}
		times = append(times, time.Since(begin))
	}
	return median(times), nil
}

// statusPoll: a status call that does not wait, beside a ping through an
// attached container alone. It does not go to Codex.
func (b *bench) statusPoll(ctx context.Context) error {
	s, err := open(ctx, b.frontEnd("docker", b.fakeImage))
	if err != nil {
		return err
	}
	defer func() { _ = s.kill() }()
	job, err := s.startJob(ctx, b.turn(`[{"do":"stall"}]`))
	if err != nil {
		return err
	}
	return b.besidePings(ctx, "status poll, beside a bare ping", "", func(id int) error {
		err := s.call(id, "codex-status", map[string]any{"jobId": job, "cursor": 0, "wait_ms": 0}, nil)
		return errors.Join(err, s.until(ctx, fmt.Appendf(nil, `"id":%d`, id)))
	})
}

// retainedJobs: what the front end's memory grows by for each job that is over,
// with an answer of 1 MiB, beside the answer.
func (b *bench) retainedJobs(ctx context.Context) error {
	const jobs, answer = 32, 1 << 20
	cmd := b.frontEnd("docker", b.fakeImage)
	cmd.Env = append(cmd.Env, "GOGC=10") // little garbage beside what is kept
	s, err := open(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { _ = s.kill() }()
	status := "/proc/" + strconv.Itoa(cmd.Process.Pid) + "/status"
	before, err := field(status, "VmRSS:")
	if err != nil {
		return err
	}
	for range jobs {
		job, err := s.startJob(ctx, b.turn(fmt.Sprintf(`[{"do":"answer-bytes","bytes":%d}]`, answer)))
		if err != nil {
			return err
		}
		for cursor, over := 0, false; !over; {
			if cursor, over, err = s.jobStatus(ctx, job, cursor); err != nil {
				return err
			}
		}
	}
	after, err := field(status, "VmRSS:")
	if err != nil {
		return err
	}
	each := float64(after-before) * 1024 / jobs
	b.row("memory of a retained job with an answer of 1 MiB", fmt.Sprintf("%.2f MiB", each/(1<<20)), "1.00 MiB", fmt.Sprintf("%.3f", each/answer), "")
	return nil
}

// turn are the arguments of a call with a script.
func (b *bench) turn(script string) map[string]any {
	return map[string]any{"prompt": script, "cwd": b.workspace, "sandbox": "read-only"}
}

// call calls a tool.
func (s *server) call(id int, tool string, arguments, meta map[string]any) error {
	params := map[string]any{"name": tool, "arguments": arguments}
	if meta != nil {
		params["_meta"] = meta
	}
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
	if err != nil {
		return err
	}
	_, err = s.in.Write(append(line, '\n'))
	return err
}

// ask calls a tool of ours and returns the structured answer.
func (s *server) ask(ctx context.Context, tool string, arguments map[string]any) (map[string]any, error) {
	s.asked++
	id := 1_000_000 + s.asked
	if err := s.call(id, tool, arguments, nil); err != nil {
		return nil, err
	}
	line, err := s.lineWith(ctx, fmt.Appendf(nil, `"id":%d`, id))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Result struct{ StructuredContent map[string]any }
	}
	if err := json.Unmarshal(line, &answer); err != nil || answer.Result.StructuredContent == nil {
		return nil, fmt.Errorf("%s: unexpected answer %.200s", tool, line)
	}
	return answer.Result.StructuredContent, nil
}

func (s *server) startJob(ctx context.Context, arguments map[string]any) (string, error) {
	answer, err := s.ask(ctx, "codex-start", arguments)
	job, _ := answer["jobId"].(string)
	if err == nil && job == "" {
		err = fmt.Errorf("codex-start: no job in %v", answer)
	}
	return job, err
}

// jobStatus waits for a change of a job.
func (s *server) jobStatus(ctx context.Context, job string, cursor int) (next int, over bool, err error) {
	answer, err := s.ask(ctx, "codex-status", map[string]any{"jobId": job, "cursor": cursor, "wait_ms": 5000})
	if err != nil {
		return 0, false, err
	}
	at, _ := answer["cursor"].(float64)
	state, _ := answer["state"].(string)
	if strings.Contains("failed canceled", state) {
		return 0, false, fmt.Errorf("the job is %s: %v", state, answer["message"])
	}
	return int(at), state == "completed", nil
}
