package credentials

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience bounds a wait for lines; a loaded machine starts eight sandboxes in seconds.
const patience = 90 * time.Second

// vendorID is the speaker of the token server's lines; front ends count from 0.
const vendorID = -1

// line is one line that somebody said.
type line struct {
	by   int
	text string
}

// scene is a user's login, the vendor's token server, and front ends.
type scene struct {
	*testing.T
	settings
	server string    // the vendor's address, as sandboxes see it
	permit io.Writer // to the vendor
	before []byte    // the user's file at the start

	said      chan line
	listening sync.WaitGroup
	seen      []line
	fronts    []*exec.Cmd
	leaving   []io.Closer // ends a front end that stays
}

// newScene is a user whose access token has ended.
func newScene(t *testing.T) *scene {
	s := &scene{T: t, said: make(chan line, 1000)}
	s.Login, s.Workspace, s.Homes = t.TempDir(), t.TempDir(), t.TempDir()
	s.before = expiredLogin()
	require.NoError(t, os.WriteFile(s.file(), s.before, 0o600))
	return s
}

func expiredLogin() []byte {
	payload := fmt.Sprintf(`{"exp":%d,"generation":1}`, time.Now().Add(-time.Hour).Unix())
	access := "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2lnbmF0dXJl"
	return fmt.Appendf(nil, `{"OPENAI_API_KEY":null,"tokens":{"access_token":%q,"refresh_token":"refresh-1","account_id":"account"}}`, access)
}

func (s *scene) file() string { return filepath.Join(s.Login, "auth.json") }

// listen takes the lines of a speaker until their end.
func (s *scene) listen(by int, r io.Reader) {
	s.listening.Go(func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			s.said <- line{by, lines.Text()}
		}
	})
}

// startVendor runs the token server on this machine's loopback.
func (s *scene) startVendor() {
	s.Helper()
	cmd := exec.Command(fakeCodex(), "token-server")
	in, err := cmd.StdinPipe()
	require.NoError(s, err)
	out, err := cmd.StdoutPipe()
	require.NoError(s, err)
	require.NoError(s, cmd.Start())
	s.Cleanup(func() {
		_ = cmd.Process.Kill()
		s.listening.Wait()
		_ = cmd.Wait()
	})
	s.permit = in
	s.listen(vendorID, out)
	s.await(map[string]int{"listening": 1})
	s.server = strings.Fields(s.find("listening")[0].text)[2]
}

// start starts n front ends at once, and watches the user's file while they run.
func (s *scene) start(n int) {
	s.Helper()
	encoded, err := json.Marshal(s.settings)
	require.NoError(s, err)
	s.watchFile()
	for i := range n {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), frontEndVariable+"="+string(encoded), "FAKELOGIN_SERVER="+s.server)
		r, w, err := os.Pipe()
		require.NoError(s, err)
		cmd.Stdout, cmd.Stderr = w, w
		leave, err := cmd.StdinPipe()
		require.NoError(s, err)
		s.leaving = append(s.leaving, leave)
		require.NoError(s, cmd.Start())
		require.NoError(s, w.Close())
		s.fronts = append(s.fronts, cmd)
		s.listen(i, r)
		s.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			_ = r.Close()
		})
	}
	s.Cleanup(func() { // before a temporary directory goes
		require.Eventually(s, func() bool { return len(entries(s.Homes)) == 0 }, patience, 20*time.Millisecond,
			"a sandbox left its home, which holds a login")
	})
}

// leave lets the front ends end that stay.
func (s *scene) leave() {
	for _, l := range s.leaving {
		_ = l.Close()
	}
}

func entries(dir string) []os.DirEntry {
	list, _ := os.ReadDir(dir)
	return list
}

// watchFile fails the test if the user's file is ever anything but a whole login.
func (s *scene) watchFile() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			data, err := os.ReadFile(s.file())
			if err != nil || generation(data) == 0 {
				s.Errorf("the user's file is no whole login: %q, %v", data, err)
				return
			}
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	s.Cleanup(func() { close(stop); <-stopped })
}

// generation is that of a whole login, or 0. Both tokens must be of it.
func generation(data []byte) int {
	var auth struct {
		Tokens struct {
			Access  string `json:"access_token"`
			Refresh string `json:"refresh_token"`
		} `json:"tokens"`
	}
	var claims struct{ Generation int }
	if json.Unmarshal(data, &auth) != nil {
		return 0
	}
	parts := strings.Split(auth.Tokens.Access, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[min(1, len(parts)-1)])
	if err != nil || json.Unmarshal(payload, &claims) != nil || auth.Tokens.Refresh != fmt.Sprintf("refresh-%d", claims.Generation) {
		return 0
	}
	return claims.Generation
}

// await takes lines until each text was said so often.
func (s *scene) await(counts map[string]int) {
	s.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		missing := ""
		for text, n := range counts {
			if got := len(s.find(text)); got < n {
				missing += fmt.Sprintf("%q: %d of %d; ", text, got, n)
			}
		}
		if missing == "" {
			return
		}
		select {
		case l := <-s.said:
			s.seen = append(s.seen, l)
		case <-timer.C:
			s.Fatalf("waited in vain for %s\n%s", missing, s.transcript())
		}
	}
}

// find are the lines so far that hold a text.
func (s *scene) find(text string) []line {
	var found []line
	for _, l := range s.seen {
		if strings.Contains(l.text, text) {
			found = append(found, l)
		}
	}
	return found
}

// requireSaid asserts how often each text was said, once every front end has ended.
func (s *scene) requireSaid(counts map[string]int) {
	s.Helper()
	for text, n := range counts {
		assert.Len(s, s.find(text), n, text)
	}
	if s.Failed() {
		s.FailNow()
	}
}

func (s *scene) transcript() string {
	var b strings.Builder
	for _, l := range s.seen {
		fmt.Fprintf(&b, "%d: %s\n", l.by, l.text)
	}
	return b.String()
}

// allow lets the vendor answer n refreshes.
func (s *scene) allow(permit string, n int) {
	s.Helper()
	_, err := io.WriteString(s.permit, strings.Repeat(permit+"\n", n))
	require.NoError(s, err)
}

// refresher is the front end that does not wait for another.
func (s *scene) refresher() int {
	waits := map[int]bool{}
	for _, l := range s.find(waiting) {
		waits[l.by] = true
	}
	for i := range s.fronts {
		if !waits[i] {
			return i
		}
	}
	s.Fatal("everybody waits")
	return 0
}
