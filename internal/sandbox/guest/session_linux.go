package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mcpagents/internal/sandbox/tunnel"
	"mcpagents/internal/sandbox/wire"
)

// session is one conversation with a front end.
type session struct {
	conn  *wire.Conn
	build string
	procs *processes
	files *files
	ports *ports

	silent  atomic.Int64 // ticks since the last frame
	greeted atomic.Bool

	ended   chan struct{} // closed when the session is over
	endOnce sync.Once
	endErr  error

	mu      sync.Mutex
	hello   wire.Hello
	cmd     *command // the running one
	mainRan bool
}

func newSession(in io.Reader, out io.Writer, home, build string) *session {
	conn := wire.NewConn(in, out)
	return &session{conn: conn, build: build, procs: newProcesses(), ports: newPorts(conn),
		files: &files{home: home}, ended: make(chan struct{})}
}

// end marks the session as over; nil is a regular end. The first reason stays.
func (s *session) end(err error) {
	s.endOnce.Do(func() {
		s.endErr = err
		close(s.ended)
	})
}

// silence is how long nothing came from the front end.
type silence time.Duration

func (s silence) Error() string {
	return fmt.Sprintf("nothing arrived from the front end for %s", time.Duration(s))
}

// wait returns when the session is over.
func (s *session) wait(caught <-chan os.Signal, beat <-chan time.Time) error {
	for {
		select {
		case <-s.ended:
			return s.endErr
		case <-caught: // noted and ignored: only the stream ends a sandbox
		case <-beat:
			s.beat()
		}
	}
}

// beat counts the silence on the stream and looks at the watched files.
func (s *session) beat() {
	limit := helloWithin
	if s.greeted.Load() {
		limit = s.hello.Lifeline
	}
	if time.Duration(s.silent.Add(1))*tick > limit {
		s.end(silence(limit))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || len(s.cmd.spawn.Watch) == 0 {
		return
	}
	for _, c := range s.files.changed(s.cmd.spawn.Watch) {
		_ = s.conn.Send(wire.Frame{Type: wire.TypeCollected, Payload: wire.EncodeCollected(c)})
	}
}

// wind ends every process: TERM, the grace, KILL. Nothing may be running any
// more when init exits, since a local sandbox has no kernel to see to it.
func (s *session) wind(err error) {
	s.mu.Lock()
	cmd, grace := s.cmd, s.hello.Grace
	s.mu.Unlock()
	if cmd != nil {
		cmd.abandon()
	}
	var broken *wire.ProtocolError
	var silent silence
	switch {
	case errors.As(err, &broken):
		_ = s.conn.SendError("protocol", broken.Text)
	case errors.As(err, &silent):
		// A front end that was stopped reads this before the command's exit,
		// which it would else take for the command's own doing.
		_ = s.conn.SendError("lifeline", silent.Error())
	}
	s.procs.stop(grace)
	if cmd != nil {
		<-cmd.finished
	}
	s.ports.close()
	s.flush()
}

// flush gives the last frames a moment to leave; a peer that does not read
// does not keep init alive.
func (s *session) flush() {
	flushed := make(chan struct{})
	go func() { defer close(flushed); _ = s.conn.Close() }()
	select {
	case <-flushed:
	case <-time.After(time.Second):
	}
}

// read handles frames until the stream ends. It waits for nothing else, so it
// never sits behind a consumer.
func (s *session) read() {
	for {
		f, err := s.conn.Next()
		if err == io.EOF {
			s.end(nil)
			return
		}
		if err != nil {
			s.end(err)
			return
		}
		s.silent.Store(0)
		if err := s.handle(f); err != nil {
			s.end(err)
			return
		}
		if f.Type == wire.TypeBye {
			s.end(nil)
			return
		}
	}
}

func (s *session) handle(f wire.Frame) error {
	if !s.greeted.Load() {
		if f.Type != wire.TypeHello {
			return wire.Errorf("%s frame before the hello", f.Type)
		}
		return s.greet(f)
	}
	if tunnel.Carries(f) {
		return s.ports.tunnel.Handle(f)
	}
	switch f.Type {
	case wire.TypeListen:
		return s.ports.listen(f)
	case wire.TypeFile:
		return s.putFile(f)
	case wire.TypeSpawn:
		return s.spawn(f)
	case wire.TypeData, wire.TypeCredit, wire.TypeEOF, wire.TypeSignal, wire.TypeResize:
		s.mu.Lock()
		cmd := s.cmd
		s.mu.Unlock()
		if cmd == nil {
			return nil // it has ended; the sender could not know
		}
		return cmd.handle(f)
	case wire.TypeCollect:
		return s.collect(f)
	case wire.TypePing:
		return s.conn.Send(wire.Frame{Type: wire.TypePong, Payload: f.Payload})
	case wire.TypePong, wire.TypeBye:
		return nil
	case wire.TypeError:
		var e wire.Error
		if err := wire.Unmarshal(f, &e); err != nil {
			return err
		}
		return fmt.Errorf("the front end gave up: %s", e.Code)
	default:
		return wire.Errorf("%s frame is not for init", f.Type)
	}
}

func (s *session) greet(f wire.Frame) error {
	var h wire.Hello
	if err := wire.Unmarshal(f, &h); err != nil {
		return err
	}
	switch {
	case h.Magic != wire.Magic:
		return wire.Errorf("the first frame is no hello of mcp-agents")
	case h.Min > wire.Version || h.Max < wire.Version:
		text := fmt.Sprintf("sandbox-init %s speaks version %d, the front end %d to %d", s.build, wire.Version, h.Min, h.Max)
		_ = s.conn.SendError("version", text)
		return errors.New(text)
	case h.Lifeline < tick || h.Grace < 0:
		return wire.Errorf("hello with a lifeline of %s and a grace of %s", h.Lifeline, h.Grace)
	case h.FilesDir != "" && (h.FilesDir[0] != '.' || len(h.FilesDir) < 3 || slices.Contains([]byte(h.FilesDir), '/')):
		return wire.Errorf("hello with a files directory that is not one hidden name")
	}
	s.mu.Lock()
	s.hello = h
	s.files.dir = h.FilesDir
	s.mu.Unlock()
	s.greeted.Store(true)
	writable := map[string]bool{}
	for _, dir := range h.Probe {
		writable[dir] = unix.Access(dir, unix.W_OK|unix.X_OK) == nil
	}
	return s.conn.SendJSON(wire.TypeHello, wire.Welcome{Version: wire.Version, Build: s.build,
		UID: os.Getuid(), GID: os.Getgid(), PID: os.Getpid(), Home: s.files.home, FilesDir: s.files.path(),
		Writable: writable, MemoryLimit: memoryLimit()})
}

func (s *session) putFile(f wire.Frame) error {
	file, err := wire.DecodeFile(f)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil || s.mainRan {
		return wire.Errorf("file frame after the spawn")
	}
	if err := s.files.put(file); err != nil {
		_ = s.conn.SendError("file", err.Error())
		return err
	}
	return nil
}

func (s *session) collect(f wire.Frame) error {
	var c wire.Collect
	if err := wire.Unmarshal(f, &c); err != nil {
		return err
	}
	if len(c.Names) > len(wire.FileNames) {
		return wire.Errorf("collect frame names %d files, at most %d", len(c.Names), len(wire.FileNames))
	}
	for _, name := range c.Names {
		if !wire.ValidName(name) {
			return wire.Errorf("collect frame names a file that is not on the list")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range c.Names {
		payload := wire.EncodeCollected(s.files.collect(name))
		if err := s.conn.Send(wire.Frame{Type: wire.TypeCollected, Payload: payload}); err != nil {
			return err
		}
	}
	return nil
}

// spawn starts a command, when no other runs and the main one has not.
func (s *session) spawn(f wire.Frame) error {
	var sp wire.Spawn
	if err := wire.Unmarshal(f, &sp); err != nil {
		return err
	}
	for _, name := range sp.Watch {
		if !wire.ValidName(name) {
			return wire.Errorf("spawn frame watches a file that is not on the list")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case isClosed(s.ended):
		return nil // everything is being ended, and what starts now would be left
	case len(sp.Argv) == 0:
		return wire.Errorf("spawn frame without a command")
	case s.cmd != nil:
		return wire.Errorf("spawn frame while a command runs")
	case s.mainRan:
		return wire.Errorf("spawn frame after the main command")
	}
	s.mainRan = sp.Main
	s.files.mark(sp.Watch)
	cmd := newCommand(s.conn, s.procs, sp, s.hello)
	if exit, ok := cmd.start(); !ok {
		return s.conn.SendJSON(wire.TypeExit, exit)
	}
	s.cmd = cmd
	go cmd.finish(func(exit wire.Exit) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cmd = nil
		for _, c := range s.files.changed(sp.Watch) {
			_ = s.conn.Send(wire.Frame{Type: wire.TypeCollected, Payload: wire.EncodeCollected(c)})
		}
		_ = s.conn.SendJSON(wire.TypeExit, exit)
	})
	return nil
}

// stop ends every process below init.
func (p *processes) stop(grace time.Duration) {
	select {
	case <-p.gone():
		return
	default:
	}
	p.signalAll(syscall.SIGTERM)
	// A stopped process takes its TERM only once it runs again.
	p.signalAll(syscall.SIGCONT)
	select {
	case <-p.gone():
	case <-time.After(grace):
		p.killAll()
	}
}

// markedEnv adds the marker to a command's environment.
func markedEnv(env []string, sandbox string) []string {
	self, err := ReadProcess(os.Getpid())
	if err != nil || self.PID == 1 {
		return env // the kernel ends what a PID 1 leaves, and its pid means nothing outside
	}
	return append(slices.Clone(env), fmt.Sprintf("%s=%s:%d:%d", Marker, sandbox, self.PID, self.Start))
}
