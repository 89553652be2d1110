package toolserver

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp/stdio"
)

var update = flag.Bool("update", false, "rewrite the out, log and returned sections of testdata/wire")

// TestWire plays the archives of testdata/wire. The comment says what is shown.
// Sections are steps, in order:
//
//	send          each line is written as one message
//	bytes         each line is a quoted Go string, written as it is
//	sleep D       time passes
//	eof           the client closes its side
//	stop REASON   the server's context ends with that cause
//	break         the client closes the other side
//	out           all bytes written since the last out; carriage returns as \r
//	log           log lines since the last log
//	returned      waits for the end of Serve: its error
//
// Bytes that no section expects are a failure.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			before := string(txtar.Format(archive))
			synctest.Test(t, func(t *testing.T) { play(t, archive) })
			if after := string(txtar.Format(archive)); *update {
				require.NoError(t, os.WriteFile(file, []byte(after), 0o644))
			} else {
				assert.Equal(t, before, after)
			}
		})
	}
}

// play runs the steps and puts what came into the sections that expect it.
func play(t *testing.T, archive *txtar.Archive) {
	d := drive(t, stdio.Options{})
	for i := range archive.Files {
		step := &archive.Files[i]
		verb, argument, _ := strings.Cut(step.Name, " ")
		switch verb {
		case "send":
			for line := range strings.Lines(string(step.Data)) {
				d.send(line)
			}
		case "bytes":
			for line := range strings.Lines(string(step.Data)) {
				raw, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
				require.NoError(t, err, line)
				d.send(raw)
			}
		case "sleep":
			pause, err := time.ParseDuration(argument)
			require.NoError(t, err)
			time.Sleep(pause)
			synctest.Wait()
		case "eof":
			require.NoError(t, d.in.Close())
			synctest.Wait()
		case "stop":
			d.cancel(errors.New(argument))
			synctest.Wait()
		case "break":
			d.out.set(false, os.ErrClosed)
		case "out":
			step.Data = visible(d.out.take())
		case "log":
			step.Data = visible(d.log.take())
		case "returned":
			<-d.ended
			step.Data = []byte("nil\n")
			if d.err != nil {
				step.Data = visible(d.err.Error())
			}
		default:
			t.Fatalf("unknown step %q", step.Name)
		}
	}
	if d.running() {
		out, err := d.finish()
		require.NoError(t, err)
		assert.Empty(t, out)
	}
	assert.Empty(t, d.out.take())
}

func visible(s string) []byte {
	s = strings.ReplaceAll(s, "\r", `\r`)
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return []byte(s)
}
