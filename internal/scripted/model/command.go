package model

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
)

// Exit statuses of [Run].
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// Run is the command: it serves until ctx ends and returns the exit status, 0
// then, 2 for a usage error and 1 for any other. When it accepts connections
// it prints one line, "model: listening on 127.0.0.1:PORT", to stdout.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("model", flag.ContinueOnError)
	flags.SetOutput(stderr)
	port := flags.Int("port", 8798, "port on 127.0.0.1; 0 takes a free one")
	scenario := flags.String("scenario", "default", "built-in scenario, or a scenario file (with a path or .json)")
	key := flags.String("key", "", "bearer key that requests must carry")
	logFile := flags.String("log", "", "append every request, prompts included, to this file")
	list := flags.Bool("list", false, "list the built-in scenarios and exit")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		return fail(stderr, exitUsage, fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	case *port < 0 || *port > 65535:
		return fail(stderr, exitUsage, fmt.Errorf("--port is %d, must be 0 to 65535", *port))
	case *list:
		return listScenarios(stdout, stderr)
	}
	sc, err := LoadScenario(*scenario)
	if err != nil {
		return fail(stderr, exitUsage, err)
	}
	s, err := Start(ctx, Options{Port: *port, Scenario: sc, Key: *key, LogFile: *logFile,
		Logger: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return fail(stderr, exitError, err)
	}
	if _, err := fmt.Fprintf(stdout, "model: listening on %s\n", s.Addr()); err != nil {
		return fail(stderr, exitError, errors.Join(err, s.Close()))
	}
	<-s.Done()
	if err := s.Close(); err != nil {
		return fail(stderr, exitError, err)
	}
	return exitOK
}

func listScenarios(stdout, stderr io.Writer) int {
	all, err := Scenarios()
	if err != nil {
		return fail(stderr, exitError, err)
	}
	for _, sc := range all {
		if _, err := fmt.Fprintf(stdout, "%-14s %s\n", sc.Name, sc.Description); err != nil {
			return fail(stderr, exitError, err)
		}
	}
	return exitOK
}

func fail(stderr io.Writer, status int, err error) int {
	fmt.Fprintf(stderr, "model: %v\n", err)
	return status
}
