package measure

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// roleEnv makes the test binary one of the servers that the tests start.
const roleEnv = "MCP_AGENTS_MEASURE_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// play is a server, or its child.
func play(role string) int {
	switch role {
	case "child": // takes memory and time, says so and stays
		b := bytes.Repeat([]byte{1}, 64<<20)
		for range 4 { // more than 50 ms on any machine, however loaded
			sum := sha512.Sum512(b)
			b[0] = sum[0]
		}
		fmt.Println("ready")
		_, _ = os.Stdin.Read(b[:1])
		return 0
	case "exits":
		fmt.Fprintln(os.Stderr, "no key")
		return 3
	case "silent":
		time.Sleep(time.Minute)
	case "parent":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), roleEnv+"=child")
		in, _ := child.StdinPipe()
		out, _ := child.StdoutPipe()
		if child.Start() != nil {
			return 1
		}
		_, _ = bufio.NewReader(out).ReadString('\n')
		defer func() { _ = in.Close(); _ = child.Wait() }()
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     int
			Method string
		}
		_ = json.Unmarshal(in.Bytes(), &m)
		switch {
		case m.Method == "tools/list" && role == "refuses":
			fmt.Println(`{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}`)
		case m.Method == "tools/list":
			fmt.Println("a banner\n" + `{"jsonrpc":"2.0","method":"note"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"roots/list"}` + "\n" +
				`{"jsonrpc":"2.0","id":2,"result":{"tools":[{},{},{}]}}`)
		case m.ID == 1:
			time.Sleep(20 * time.Millisecond)
			fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		}
	}
	return 0
}

func server(role string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	return cmd
}

func TestStart(t *testing.T) {
	alone, err := Start(t.Context(), server("alone"))
	require.NoError(t, err)
	assert.Equal(t, 3, alone.Tools)
	assert.GreaterOrEqual(t, alone.Initialize, 20*time.Millisecond)
	assert.GreaterOrEqual(t, alone.ToolList, alone.Initialize)
	assert.Positive(t, alone.CPU)
}

func TestStartFails(t *testing.T) {
	_, err := Start(t.Context(), server("exits"))
	require.ErrorContains(t, err, "the server ended without an answer\nits stderr ends:\nno key")
	_, err = Start(t.Context(), server("refuses"))
	require.ErrorContains(t, err, `tools/list: the server answers with an error: {"code":-1`)
	_, err = Start(t.Context(), exec.Command("/nonexistent/server"))
	require.Error(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = Start(ctx, server("silent"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestMedian(t *testing.T) {
	assert.Equal(t, Startup{2, 20, 200, 7, 1}, Median([]Startup{{1, 30, 200, 9, 1}, {3, 10, 100, 7, 1}, {2, 20, 300, 5, 1}}))
}
