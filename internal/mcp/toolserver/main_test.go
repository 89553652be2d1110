package toolserver

import (
	"context"
	"log"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"mcpagents/internal/mcp/stdio"
)

// roleEnv makes the test binary play a server instead of running tests.
const roleEnv = "TOOLSERVER_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	os.Exit(noisyServer())
}

// noisyServer serves on the real standard streams with everything logged, and
// with tools that print where careless code prints.
func noisyServer() int {
	stdio.CatchBrokenPipe()
	tools := testTools(new(record))
	tools = append(tools, Tool{Name: "noise", InputSchema: anySchema, Call: func(_ context.Context, call Call) (Result, error) {
		log.Print("log")
		slog.Debug("slog")
		println("println")
		call.Progress("noise")
		panic("noise: {\"jsonrpc\"")
	}})
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	slog.SetDefault(logger)
	server, err := New(Config{Provider: "test", Name: "mcp-agents", Version: "1.2.3", Tools: tools, Log: logger})
	if err == nil {
		err = server.Serve(context.Background(), os.Stdin, os.Stdout)
	}
	if err != nil {
		return 1
	}
	return 0
}
