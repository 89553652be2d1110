package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/pelletier/go-toml/v2/unstable"
)

const (
	fastTier      = "fast"
	featuresTable = "features"
	fastFeature   = "fast_mode"

	// maxSource bounds the user's configuration, in bytes; real ones have a few thousand.
	maxSource = 1 << 20
)

// ReadFastOptIn is [FastOptIn] of the user's configuration at path. An absent file is no
// opt-in. So is one that cannot be read, with an error for the log: it is no reason to stop.
func ReadFastOptIn(path string) (bool, error) {
	source, err := readSource(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("failed to read source Codex Fast-mode config: %w", err)
	}
	return FastOptIn(source), nil
}

// readSource looks before it opens, since opening a named pipe would wait for its writer.
func readSource(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	source, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if err == nil && len(source) > maxSource {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxSource)
	}
	return source, err
}

// FastOptIn reports whether a user's config.toml asks for Fast mode, which costs more and so
// must be asked for twice: by service_tier = "fast" at the top level and by fast_mode = true
// in the table [features]. Only these spellings count: no profile or other table, no dotted
// key, inline or array table, no multi-line string. A repeated key, an unbalanced quote or
// whatever else is not TOML asks for nothing: the CLI would not load the file.
//
// The text is parsed, not decoded, since a decoder makes all spellings alike.
func FastOptIn(source []byte) bool {
	if len(source) > maxSource {
		return false
	}
	var parser unstable.Parser
	parser.Reset(source)
	var tier, feature setting
	top, features := true, false
	for parser.NextExpression() {
		e := parser.Expression()
		switch {
		case e.Kind == unstable.Table, e.Kind == unstable.ArrayTable:
			top, features = false, e.Kind == unstable.Table && isKey(e, featuresTable)
		case top && isKey(e, "service_tier"):
			tier.add(isFastTier(&parser, e.Value()))
		case features && isKey(e, fastFeature):
			feature.add(e.Value().Kind == unstable.Bool && string(e.Value().Data) == "true")
		}
	}
	return parser.Error() == nil && tier.on() && feature.on()
}

// setting is a key that may be set once.
type setting struct {
	times int
	value bool
}

func (s *setting) add(value bool) { s.times, s.value = s.times+1, value }
func (s *setting) on() bool       { return s.times == 1 && s.value }

// isKey: the key of e, a header or an assignment, is the one word name, quoted or not.
func isKey(e *unstable.Node, name string) bool {
	it := e.Key()
	return it.Next() && string(it.Node().Data) == name && !it.Next()
}

func isFastTier(parser *unstable.Parser, value *unstable.Node) bool {
	raw := string(parser.Raw(value.Raw))
	return value.Kind == unstable.String && (raw == `"`+fastTier+`"` || raw == `'`+fastTier+`'`)
}
