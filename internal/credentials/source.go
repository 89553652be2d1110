// Package credentials copies a user's CLI login for a sandbox and brings rotated tokens back.
//
// A CLI needs a few small files to be logged in. Mounting them would break the CLI's own
// save (a rename onto a mount point fails) and would let a sandbox replace the user's login,
// so [Take] copies them into a [Snapshot] and the sandbox gets the copy. Refresh tokens are
// single-use: once a CLI in a sandbox has refreshed, only its copy is alive, and
// [Snapshot.WriteBack] stores it in the user's directory. What a sandbox hands back is
// hostile input, and the user's file belongs to the user, so a write-back is conditional:
// it replaces only the very bytes that the copy descends from. Two copies that refresh at once
// would spend one token twice, so [Acquire] lets only one sandbox start with a copy that is
// about to be refreshed.
package credentials

import (
	"os"
	"path/filepath"
	"time"
)

// Source says where a provider's login lives and what makes it one. It is plain data; the
// directory is looked up each time it is used, so that a snapshot taken at one time is
// written back to where the login is at the other.
type Source struct {
	Name        string   // the provider in messages, such as "Codex"
	Dir         string   // the login's directory where the operator named one; wins over the variable
	DirVariable string   // the environment variable that names the directory, such as "CODEX_HOME"
	DefaultDir  string   // the directory below the home directory otherwise, such as ".codex"
	Credential  string   // the one file that holds the login and is written back, such as "auth.json"
	Extras      []string // further files, copied if they can be and never written back

	// Secrets are the members of the credential that make it a login, as dotted paths. One
	// that held a value is never replaced by a blank.
	Secrets []string
	// Account is the member that names whose login it is; a copy of another account is
	// never written back. Empty means the file does not say.
	Account string
	// Refresh is the member with the single-use refresh token. Without a value there the CLI
	// refreshes nothing, and no front end waits for it.
	Refresh string
	// Expiry tells when the access token ends: the first entry that reads well counts.
	Expiry []Expiry

	// KeyVariables are environment variables that stand in for an absent credential file, the
	// first one that is set wins, as a credential with the single member KeyMember.
	KeyVariables []string
	KeyMember    string

	Remedy string              // what a user does to log in, such as "run codex login"
	Getenv func(string) string // nil means [os.Getenv]
}

// Codex is the login of the Codex CLI. dir is the operator's choice of its directory, or
// empty for $CODEX_HOME, else $HOME/.codex, else .codex in the temporary directory.
func Codex(dir string) Source {
	return Source{
		Name:        "Codex",
		Dir:         dir,
		DirVariable: "CODEX_HOME",
		DefaultDir:  ".codex",
		Credential:  "auth.json",
		Extras:      []string{"models_cache.json"},
		Secrets: []string{
			"OPENAI_API_KEY", "tokens.access_token", "tokens.refresh_token", "tokens.id_token",
			"agent_identity", "personal_access_token", "bedrock_api_key", "bedrock_access_keys",
		},
		Account: "tokens.account_id",
		Refresh: "tokens.refresh_token",
		// Codex refreshes by the same rule: 5 minutes before the access token's own end, and
		// 8 days after the last refresh where the token does not tell.
		Expiry: []Expiry{
			{Member: "tokens.access_token", Kind: JWT},
			{Member: "last_refresh", Kind: Refreshed, Life: 8 * 24 * time.Hour},
		},
		KeyVariables: []string{"CODEX_API_KEY", "OPENAI_API_KEY"},
		KeyMember:    "OPENAI_API_KEY",
		Remedy:       "run codex login as this user",
	}
}

// Directory is the login's directory as the environment gives it now. It need not exist.
func (s Source) Directory() string {
	if s.Dir != "" {
		return s.Dir
	}
	if s.DirVariable != "" {
		if dir := s.getenv(s.DirVariable); dir != "" {
			return dir
		}
	}
	home := s.getenv("HOME")
	if home == "" {
		home = os.TempDir()
	}
	return filepath.Join(home, s.DefaultDir)
}

// path is the credential's place now.
func (s Source) path() string { return filepath.Join(s.Directory(), s.Credential) }

// place names the login's directory in messages without showing where a user keeps it.
func (s Source) place() string {
	if s.DirVariable != "" {
		return s.DirVariable
	}
	return "its directory"
}

func (s Source) getenv(name string) string {
	if s.Getenv != nil {
		return s.Getenv(name)
	}
	return os.Getenv(name)
}
