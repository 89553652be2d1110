package guest

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/wire"
)

// Every broken rule is answered by one error and ends init with status 1.
func TestBrokenProtocol(t *testing.T) {
	long := bash("sleep 50")
	mainCommand := bash("true")
	mainCommand.Main = true
	watch := bash("true")
	watch.Watch = []string{"id_rsa"}
	h := hello()
	changed := func(f func(*wire.Hello)) wire.Hello { c := h; f(&c); return c }
	for name, tt := range map[string]struct {
		send func(*peer)
		want string // the error frame's text, in part
	}{
		"wrong magic":       {func(p *peer) { p.json(wire.TypeHello, changed(func(h *wire.Hello) { h.Magic = "x" })) }, "no hello of mcp-agents"},
		"only newer":        {func(p *peer) { p.json(wire.TypeHello, changed(func(h *wire.Hello) { h.Min, h.Max = 2, 5 })) }, "speaks version 1, the front end 2 to 5"},
		"only older":        {func(p *peer) { p.json(wire.TypeHello, changed(func(h *wire.Hello) { h.Min, h.Max = 0, 0 })) }, "speaks version 1, the front end 0 to 0"},
		"no lifeline":       {func(p *peer) { p.json(wire.TypeHello, changed(func(h *wire.Hello) { h.Lifeline = 0 })) }, "lifeline of 0s"},
		"files dir is up":   {func(p *peer) { p.json(wire.TypeHello, changed(func(h *wire.Hello) { h.FilesDir = ".." })) }, "files directory"},
		"files dir is deep": {func(p *peer) { p.json(wire.TypeHello, changed(func(h *wire.Hello) { h.FilesDir = ".a/../.." })) }, "files directory"},
		"hello is no JSON":  {func(p *peer) { p.send(wire.TypeHello, 0, []byte("GET /")) }, "hello frame of 5 bytes"},
		"spawn first":       {func(p *peer) { p.json(wire.TypeSpawn, long) }, "spawn frame before the hello"},
		"ping first":        {func(p *peer) { p.send(wire.TypePing, 0, make([]byte, 8)) }, "ping frame before the hello"},
		"not frames":        {func(p *peer) { _, _ = p.in.WriteString("{\"jsonrpc\":\"2.0\"}\n") }, "unknown frame"},
		"second hello":      {func(p *peer) { p.greet(h); p.json(wire.TypeHello, h) }, "hello frame is not for init"},
		"spawn twice":       {func(p *peer) { p.greet(h); p.spawn(long); p.json(wire.TypeSpawn, long) }, "while a command runs"},
		"spawn after main":  {func(p *peer) { p.greet(h); p.run(mainCommand); p.json(wire.TypeSpawn, long) }, "after the main command"},
		"spawn of nothing":  {func(p *peer) { p.greet(h); p.json(wire.TypeSpawn, wire.Spawn{Dir: "/"}) }, "without a command"},
		"watch elsewhere":   {func(p *peer) { p.greet(h); p.json(wire.TypeSpawn, watch) }, "not on the list"},
		"file after spawn":  {func(p *peer) { p.greet(h); p.spawn(long); p.send(wire.TypeFile, 0, []byte("\x09auth.json{}")) }, "file frame after the spawn"},
		"file after main":   {func(p *peer) { p.greet(h); p.run(mainCommand); p.send(wire.TypeFile, 0, []byte("\x09auth.json{}")) }, "file frame after the spawn"},
		"file elsewhere":    {func(p *peer) { p.greet(h); p.send(wire.TypeFile, 0, []byte("\x06id_rsax")) }, "not on the list"},
		"file of 255 name":  {func(p *peer) { p.greet(h); p.send(wire.TypeFile, 0, append([]byte{255}, make([]byte, 300)...)) }, "not on the list"},
		"file too large": {func(p *peer) {
			p.greet(h)
			p.send(wire.TypeFile, 0, append([]byte("\x09auth.json"), make([]byte, wire.MaxFile+1)...))
		}, "at most"},
		"file twice": {func(p *peer) {
			p.greet(h)
			p.send(wire.TypeFile, 0, []byte("\x09auth.json{}"))
			p.send(wire.TypeFile, 0, []byte("\x09auth.json{}"))
		}, "file exists"},
		"oversized":         {func(p *peer) { p.greet(h); _, _ = p.in.Write([]byte{2, 0, 0, 0, 0, 0x20, 0, 0}) }, "at most 1048576"},
		"data for stdout":   {func(p *peer) { p.greet(h); p.spawn(long); p.send(wire.TypeData, 1, []byte("x")) }, "data frame for stream 1"},
		"credit for stdin":  {func(p *peer) { p.greet(h); p.spawn(long); p.send(wire.TypeCredit, 0, wire.AppendUint32(1)) }, "credit for stream 0"},
		"credit unspent":    {func(p *peer) { p.greet(h); p.spawn(long); p.send(wire.TypeCredit, 2, wire.AppendUint32(1)) }, "exceeds the window"},
		"signal 0":          {func(p *peer) { p.greet(h); p.spawn(long); p.json(wire.TypeSignal, wire.Signal{}) }, "signal 0"},
		"signal 65":         {func(p *peer) { p.greet(h); p.spawn(long); p.json(wire.TypeSignal, wire.Signal{Number: 65}) }, "signal 65"},
		"collect elsewhere": {func(p *peer) { p.greet(h); p.json(wire.TypeCollect, wire.Collect{Names: []string{"../x"}}) }, "not on the list"},
		"collect too much": {func(p *peer) {
			p.greet(h)
			p.json(wire.TypeCollect, wire.Collect{Names: []string{"auth.json", "auth.json", "auth.json", "auth.json", "auth.json", "auth.json", "auth.json"}})
		}, "names 7 files, at most 6"},
		"listen first":     {func(p *peer) { p.json(wire.TypeListen, wire.Listen{Port: 1}) }, "listen frame before the hello"},
		"open first":       {func(p *peer) { p.send(wire.TypeOpen, 3, []byte(`{"port":1}`)) }, "open frame before the hello"},
		"listen on port 0": {func(p *peer) { p.greet(h); p.json(wire.TypeListen, wire.Listen{}) }, "listen frame with port 0"},
		"listen twice": {func(p *peer) {
			p.greet(h)
			p.json(wire.TypeListen, wire.Listen{Port: freePort(p.t)})
			p.json(wire.TypeListen, wire.Listen{Port: freePort(p.t)})
		}, "a second listen frame"},
		"open with init's number": {func(p *peer) { p.greet(h); p.send(wire.TypeOpen, wire.FirstInit, []byte(`{"port":1}`)) }, "not the sender's"},
		"data of no connection":   {func(p *peer) { p.greet(h); p.send(wire.TypeData, wire.FirstFront, []byte("x")) }, "which is no connection"},
		"a frame of init's":       {func(p *peer) { p.greet(h); p.json(wire.TypeExit, wire.Exit{}) }, "exit frame is not for init"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startInit(t, "sandbox-init", nil)
			tt.send(p)
			var texts []string
			for {
				f, err := p.next()
				if err != nil {
					require.Equal(t, io.EOF, err)
					break
				}
				if f.Type == wire.TypeError {
					var e wire.Error
					require.NoError(t, wire.Unmarshal(f, &e))
					texts = append(texts, e.Text)
				}
			}
			require.Len(t, texts, 1, p.diag.String())
			require.Contains(t, texts[0], tt.want)
			require.Equal(t, 1, p.wait())
			require.Contains(t, p.diag.String(), tt.want)
		})
	}
}

func TestByeWithNothingRunning(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	w := p.greet(hello())
	require.Equal(t, wire.Welcome{Version: 1, UID: os.Getuid(), GID: os.Getgid(), PID: p.cmd.Process.Pid, Home: p.home,
		FilesDir: p.home, MemoryLimit: w.MemoryLimit}, w)
	begin := time.Now()
	p.send(wire.TypeBye, 0, nil)
	_, err := p.next()
	require.Equal(t, io.EOF, err)
	require.Zero(t, p.wait())
	require.Less(t, time.Since(begin), time.Second)
}

// Each way to end a sandbox gives TERM, the grace, and KILL.
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(*peer){
		"bye":        func(p *peer) { p.send(wire.TypeBye, 0, nil) },
		"stream end": func(p *peer) { _ = p.in.Close() },
		"an error":   func(p *peer) { p.json(wire.TypeError, wire.Error{Code: "lost", Text: "x"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startInit(t, "sandbox-init", nil)
			p.greet(hello())
			file := filepath.Join(p.home, "terms")
			pid := p.spawn(bash("trap 'echo term >>" + file + "' TERM; echo up; while :; do sleep 0.05; done"))
			p.want(wire.TypeData)
			begin := time.Now()
			end(p)
			_, _, exit := p.finish()
			require.GreaterOrEqual(t, time.Since(begin), 300*time.Millisecond, "the grace")
			require.Equal(t, 9, exit.Signal)
			p.wait()
			require.Less(t, time.Since(begin), 5*time.Second)
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, "term\n", string(b))
			_, err = ReadProcess(pid)
			require.Error(t, err)
		})
	}
}

// A command that obeys TERM is not made to wait for the grace.
func TestGraceIsNoDelay(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	h := hello()
	h.Grace = time.Minute
	p.greet(h)
	p.spawn(bash("sleep 100 & sleep 100"))
	begin := time.Now()
	p.send(wire.TypeBye, 0, nil)
	_, _, exit := p.finish()
	require.Equal(t, 15, exit.Signal)
	p.wait()
	require.Less(t, time.Since(begin), 10*time.Second)
}

func newTestSession(t *testing.T) (s *session, front *wire.Conn, hangUp func()) {
	ar, aw := io.Pipe()
	br, bw := io.Pipe()
	s = newSession(ar, bw, t.TempDir(), "test")
	front = wire.NewConn(br, aw)
	return s, front, func() {
		_, _, _, _ = ar.Close(), aw.Close(), br.Close(), bw.Close()
		_, _ = front.Close(), s.conn.Close()
	}
}

// The lifeline is counted in ticks: so many beats without a frame end the
// session, each frame starts the count anew, and no clock is asked.
func TestLifelineIsCountedInTicks(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hello bool
		limit int
	}{{"no hello", false, 30}, {"no ping", true, 7}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, front, hangUp := newTestSession(t)
				go s.read()
				beats, over := make(chan time.Time), make(chan error, 1)
				go func() { over <- s.wait(nil, beats) }()
				if tt.hello {
					h := hello()
					h.Lifeline = time.Duration(tt.limit) * tick
					require.NoError(t, front.SendJSON(wire.TypeHello, h))
					_, err := front.Next()
					require.NoError(t, err)
					for range 3 {
						for range tt.limit {
							beats <- time.Time{}
						}
						synctest.Wait() // the last beat is counted
						require.NoError(t, front.Send(wire.Frame{Type: wire.TypePing, Payload: make([]byte, 8)}))
						_, err := front.Next()
						require.NoError(t, err)
					}
				}
				for range tt.limit {
					beats <- time.Time{}
				}
				synctest.Wait()
				require.Empty(t, over, "not before its time")
				beats <- time.Time{}
				require.EqualError(t, <-over, "nothing arrived from the front end for "+(time.Duration(tt.limit)*tick).String())
				hangUp()
			})
		})
	}
}

// A spawn that arrives while the session ends starts nothing: it would be left.
func TestSpawnWhileEnding(t *testing.T) {
	s, _, hangUp := newTestSession(t)
	defer hangUp()
	s.hello = hello()
	s.greeted.Store(true)
	s.end(nil)
	require.NoError(t, s.handle(wire.Frame{Type: wire.TypeSpawn, Payload: wire.Marshal(bash("sleep 100"))}))
	require.Nil(t, s.cmd)
	<-s.procs.gone()
}

func TestAllExitCodes(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	for code := range 256 {
		_, _, exit := p.run(bash("exit " + strconv.Itoa(code)))
		require.Equal(t, wire.Exit{Code: code, Reason: wire.ReasonExit}, exit)
	}
	for _, sig := range []int{1, 2, 3, 6, 9, 10, 11, 12, 13, 14, 15, 34, 64} {
		_, _, exit := p.run(wire.Spawn{Argv: []string{"/bin/sh", "-c", "ulimit -c 0; kill -" + strconv.Itoa(sig) + " $$; sleep 5"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"})
		require.Equal(t, wire.Exit{Code: 128 + sig, Signal: sig, Reason: wire.ReasonSignal}, exit)
	}
}

// Output larger than the window and the pipe arrives whole although its reader
// is slower than the command's end, and the exit comes once, behind all of it.
func TestExitComesAfterTheDrain(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	const size = wire.Window + 200_000 // the rest stands in the pipe when the command ends
	pid := p.spawn(bash("head -c " + strconv.Itoa(size) + " /dev/zero | tr '\\0' x; echo END >&2"))
	require.Eventually(t, func() bool { _, err := ReadProcess(pid); return err != nil }, patience, 5*time.Millisecond,
		"the command ended while nobody read")
	out, errOut, exit := p.finish()
	require.Len(t, out, size)
	require.Equal(t, "END\n", errOut)
	require.Equal(t, [3]int64{0, size, 4}, exit.Bytes)
	p.send(wire.TypeBye, 0, nil)
	_, err := p.next()
	require.Equal(t, io.EOF, err, "nothing comes behind the exit")
}

// The end of stdin queues behind its data; the lifeline's end does not.
func TestEndsOfStdinAndLifeline(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	sp := bash("sleep 0.2; wc -c")
	sp.Stdin = true
	p.spawn(sp)
	for range wire.Window / wire.MaxData {
		p.send(wire.TypeData, 0, make([]byte, wire.MaxData))
	}
	p.send(wire.TypeEOF, 0, nil)
	out, _, _ := p.finish()
	require.Equal(t, strconv.Itoa(wire.Window)+"\n", out)

	sp = bash("sleep 100") // never reads
	sp.Stdin = true
	p.spawn(sp)
	for range wire.Window / wire.MaxData {
		p.send(wire.TypeData, 0, make([]byte, wire.MaxData))
	}
	p.send(wire.TypeEOF, 0, nil)
	begin := time.Now()
	p.send(wire.TypeBye, 0, nil)
	p.finish()
	p.wait()
	require.Less(t, time.Since(begin), 5*time.Second)
}

func TestLifetime(t *testing.T) {
	p := startInit(t, "sandbox-init", nil)
	p.greet(hello())
	sp := bash("trap '' TERM; sleep 100")
	sp.Lifetime = 200 * time.Millisecond
	begin := time.Now()
	_, _, exit := p.run(sp)
	require.Equal(t, []any{wire.ReasonLifetime, 9}, []any{exit.Reason, exit.Signal})
	require.GreaterOrEqual(t, time.Since(begin), 500*time.Millisecond)
	// A lifetime that is over with its command must not touch the next one.
	for range 20 {
		short := bash("exit 4")
		short.Lifetime = 3 * time.Millisecond
		p.run(short)
		_, _, exit := p.run(bash("sleep 0.01; exit 5"))
		require.Equal(t, 5, exit.Code)
	}
}

// A terminal becomes the command's controlling one and not init's, which leads
// a session as well: an ordinary user could not take it away again.
func TestTerminalOfAnOrdinaryUser(t *testing.T) {
	attr := unprivileged()
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Setsid = true
	p := startInit(t, "sandbox-init", attr)
	p.greet(hello())
	sp := bash("stty size </dev/tty")
	sp.PTY = &wire.Resize{Rows: 5, Cols: 7}
	out, _, exit := p.run(sp)
	require.Equal(t, "5 7\r\n", out, exit.Text)
}
