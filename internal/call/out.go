package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Names in the output directory.
const (
	diffFile   = "diff.patch"
	resultFile = "result.json"
	logFile    = "call.log"
)

const (
	// diffTime bounds the reading of a work tree, before and after.
	diffTime = 5 * time.Minute
	// hurryTime bounds it after a signal: a CI system soon kills.
	hurryTime = 3 * time.Second
)

// outDir is the output directory, or nil if none was asked for.
type outDir struct {
	dir     string
	logTo   *os.File
	before  *snapshot // nil where there is no work tree
	trouble error     // why there is none
}

// openOut makes the directory, removes what an earlier call left there, and
// takes down what the work tree holds.
func openOut(ctx context.Context, o Options, args []argument) (*outDir, error) {
	if o.OutDir == "" {
		return nil, nil
	}
	out := &outDir{dir: absolute(o.Dir, o.OutDir)}
	if err := os.MkdirAll(out.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make --out: %w", err)
	}
	for _, name := range []string{diffFile, resultFile} {
		if err := os.Remove(filepath.Join(out.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("remove what --out held: %w", err)
		}
	}
	var err error
	if out.logTo, err = os.Create(filepath.Join(out.dir, logFile)); err != nil {
		return nil, fmt.Errorf("make the log in --out: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, diffTime)
	defer cancel()
	out.before, out.trouble = takeSnapshot(ctx, workDir(o, args), out.dir)
	return out, nil
}

func (o *outDir) log() io.Writer {
	if o == nil {
		return io.Discard
	}
	return o.logTo
}

// finish writes the result and the diff. It returns what could not be written.
func (o *outDir) finish(ctx context.Context, a answer) (problems []error) {
	if o == nil {
		return nil
	}
	if err := o.writeResult(a); err != nil {
		problems = append(problems, err)
	}
	if o.trouble != nil {
		return append(problems, fmt.Errorf("there is no %s: %w", diffFile, o.trouble))
	}
	limit := diffTime
	if ctx.Err() != nil {
		limit = hurryTime
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := o.before.diff(ctx, filepath.Join(o.dir, diffFile)); err != nil {
		problems = append(problems, fmt.Errorf("there is no %s: %w", diffFile, err))
	}
	return problems
}

// writeResult writes the tool's result, or {"error": {"message": …}} where
// there is none.
func (o *outDir) writeResult(a answer) error {
	var v any = a.result
	if a.err != nil {
		v = map[string]any{"error": map[string]string{"message": a.err.Error()}}
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	f, err := os.Create(filepath.Join(o.dir, resultFile))
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}

func (o *outDir) close() error {
	if o == nil {
		return nil
	}
	return errors.Join(o.logTo.Close(), o.before.close())
}
