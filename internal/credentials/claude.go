package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ClaudeKeyVariables are environment variables that log Claude Code in by
// themselves: they go to its environment and make no file.
var ClaudeKeyVariables = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}

// Claude is the login of Claude Code. dir is the operator's choice of its directory, or empty
// for $CLAUDE_CONFIG_DIR, else $HOME/.claude.
func Claude(dir string) Source {
	return Source{
		Name:        "Claude Code",
		Dir:         dir,
		DirVariable: "CLAUDE_CONFIG_DIR",
		DefaultDir:  ".claude",
		Credential:  ".credentials.json",
		Secrets:     []string{"claudeAiOauth.accessToken", "claudeAiOauth.refreshToken"},
		Refresh:     "claudeAiOauth.refreshToken",
		Expiry:      []Expiry{{Member: "claudeAiOauth.expiresAt", Kind: Milliseconds}},
		Remedy: "run claude and /login as this user, or set ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN " +
			"(claude setup-token makes one; on macOS, where the login is in the Keychain, it is the only way into a sandbox)",
	}
}

// ClaudeConfigFile is Claude Code's file of settings, history and account.
const ClaudeConfigFile = ".claude.json"

// claudeConfigMembers are what a sandbox needs of that file: who is logged in, and a key that
// a console login left there. The rest (projects, history, servers) stays.
var claudeConfigMembers = []string{"oauthAccount", "primaryApiKey", "customApiKeyResponses", "hasCompletedOnboarding"}

// maxClaudeConfig bounds the file, which grows with every project, in bytes.
const maxClaudeConfig = 64 << 20

// ClaudeConfig is the minimum of the user's .claude.json for a sandbox, an empty object if
// there is none. hasKey says that it logs in by itself. src is a source that [Claude] made. An
// unreadable or malformed file is an error, with an object that can be used all the same.
func ClaudeConfig(ctx context.Context, src Source) (file File, hasKey bool, err error) {
	all, err := readClaudeConfig(ctx, src.claudeConfigPath())
	if err != nil {
		err = fmt.Errorf("copy %s %s: %w", src.Name, ClaudeConfigFile, err)
	}
	kept := map[string]json.RawMessage{"hasCompletedOnboarding": json.RawMessage("true")}
	for _, name := range claudeConfigMembers {
		if value, ok := all[name]; ok {
			kept[name] = value
		}
	}
	var key string
	_ = json.Unmarshal(kept["primaryApiKey"], &key) // another type is no key
	data, encodeErr := json.Marshal(kept)
	if encodeErr != nil || len(data) > MaxFile {
		return File{Name: ClaudeConfigFile, Mode: FileMode, Data: []byte("{}")}, false, errors.Join(err, encodeErr)
	}
	return File{Name: ClaudeConfigFile, Mode: FileMode, Data: data}, key != "", err
}

// claudeConfigPath: the file is in the named directory, but beside the default one.
func (s Source) claudeConfigPath() string {
	dir := s.Directory()
	if s.Dir == "" && s.getenv(s.DirVariable) == "" {
		dir = filepath.Dir(dir)
	}
	return filepath.Join(dir, ClaudeConfigFile)
}

func readClaudeConfig(ctx context.Context, path string) (map[string]json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case absent(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s %w", path, errNotRegular)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxClaudeConfig+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxClaudeConfig {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxClaudeConfig)
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return nil, fmt.Errorf("%s is not a JSON object", path)
	}
	return all, nil
}
