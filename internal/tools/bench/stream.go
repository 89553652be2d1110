package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// bareFake is the fake Codex in a container that this program is attached to by
// the docker client, without us between.
func (b *bench) bareFake() *exec.Cmd {
	return exec.Command("docker", "run", "-i", "--rm", "--network", "none", "--entrypoint", "codex", b.fakeImage, "mcp-server")
}

// roundTrip: a ping of 200 bytes through front end and container, beside the
// same through an attached container alone.
func (b *bench) roundTrip(ctx context.Context) error {
	s, err := open(ctx, b.frontEnd("docker", b.fakeImage))
	if err != nil {
		return err
	}
	defer func() { _ = s.kill() }()
	return b.besidePings(ctx, "round trip of 200 bytes", "1.3", func(id int) error { return s.ping(ctx, id) })
}

// besidePings prints how long an exchange takes beside a ping through an
// attached container alone. They take turns of 100, so that what disturbs the
// machine disturbs both.
func (b *bench) besidePings(ctx context.Context, what, aim string, ours func(id int) error) error {
	bare, err := open(ctx, b.bareFake())
	if err != nil {
		return err
	}
	defer func() { _ = bare.kill() }()
	exchanges := []func(id int) error{ours, func(id int) error { return bare.ping(ctx, id) }}
	times := make([][]time.Duration, len(exchanges))
	for turn := range 22 {
		for i, exchange := range exchanges {
			for n := range 100 {
				begin := time.Now()
				if err := exchange(1000 + turn*100 + n); err != nil {
					return err
				}
				times[i] = append(times[i], time.Since(begin))
			}
		}
	}
	warm := len(times[0]) / 10
	b.ratio(what, median(times[0][warm:]), median(times[1][warm:]), aim)
	return nil
}

var pad = strings.Repeat("x", 120)

// ping sends a ping of 200 bytes and reads its answer.
func (s *server) ping(ctx context.Context, id int) error {
	_, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"_meta":{"pad":"%s"}}}`+"\n", id, pad)
	return errors.Join(err, s.until(ctx, fmt.Appendf(nil, `"id":%d`, id)))
}

const flood = 256 << 20

// flooded is how long a server takes to write 256 MiB in lines of 64 KiB.
func (b *bench) flooded(ctx context.Context, cmd *exec.Cmd) (time.Duration, error) {
	s, err := startServer(cmd)
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.close() }()
	call := `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"[{\"do\":\"stdout\",\"bytes\":` +
		strconv.Itoa(flood) + `},{\"do\":\"answer\",\"text\":\"end\"}]","cwd":"` + b.workspace + `","sandbox":"read-only"}}}` + "\n"
	if _, err := io.WriteString(s.in, handshake); err != nil {
		return 0, err
	}
	if err := s.until(ctx, []byte(`"id":2`)); err != nil {
		return 0, err
	}
	begin := time.Now()
	if _, err := io.WriteString(s.in, call); err != nil {
		return 0, err
	}
	total := 0
	for ctx.Err() == nil {
		line, err := s.out.ReadSlice('\n')
		total += len(line)
		if err != nil {
			return 0, err
		}
		if bytes.Contains(line[:min(len(line), 60)], []byte(`"id":3`)) {
			break
		}
	}
	if total < flood {
		return 0, fmt.Errorf("only %d bytes arrived", total)
	}
	return time.Since(begin), ctx.Err()
}

func (b *bench) rate(what string, ctx context.Context, ours, bare func() *exec.Cmd, aim string) error {
	a, c, err := alternate(3,
		func() (time.Duration, error) { return b.flooded(ctx, ours()) },
		func() (time.Duration, error) { return b.flooded(ctx, bare()) })
	if err != nil {
		return err
	}
	rate := func(d time.Duration) string { return fmt.Sprintf("%.0f MB/s", flood/1e6/d.Seconds()) }
	b.row(what, rate(a), rate(c), fmt.Sprintf("%.2f", c.Seconds()/a.Seconds()), aim)
	return nil
}

// throughput: lines of 64 KiB through front end and container, beside an
// attached container alone.
func (b *bench) throughput(ctx context.Context) error {
	return b.rate("throughput of 64 KiB lines, container", ctx, func() *exec.Cmd { return b.frontEnd("docker", b.fakeImage) }, b.bareFake, "0.8")
}

// localThroughput: the same on the local runtime, beside a pipe.
func (b *bench) localThroughput(ctx context.Context) error {
	return b.rate("throughput of 64 KiB lines, local runtime", ctx, func() *exec.Cmd { return b.frontEnd("local", "") },
		func() *exec.Cmd { return exec.Command(b.fake, "mcp-server") }, "0.5")
}

// idleMemory: the resident memory of a front end that waits.
func (b *bench) idleMemory(ctx context.Context) error {
	cmd := b.frontEnd("docker", b.fakeImage)
	s, err := startServer(cmd)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }()
	_, err = io.WriteString(s.in, handshake)
	err = errors.Join(err, s.until(ctx, []byte(`"id":2`)))
	if err != nil {
		return err
	}
	kib, err := field("/proc/"+strconv.Itoa(cmd.Process.Pid)+"/status", "VmRSS:")
	if err != nil {
		return err
	}
	b.row("resident memory of an idle front end", fmt.Sprintf("%.1f MiB", float64(kib)/1024), "", "", "20 MiB")
	return nil
}

// memoryUsed is what the machine uses, in bytes.
func memoryUsed() (int64, error) {
	total, err1 := field("/proc/meminfo", "MemTotal:")
	free, err2 := field("/proc/meminfo", "MemAvailable:")
	return (total - free) << 10, errors.Join(err1, err2)
}

// field reads a number of KiB from a file of /proc.
func field(path, name string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, name)
}
