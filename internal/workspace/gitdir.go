package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of what is read from a repository, which may be hostile.
const (
	maxPointer = 8 << 10  // .git, gitdir and commondir files: a path and a few letters
	maxConfig  = 64 << 10 // a submodule's config
)

// Mounts returns what a sandbox needs of the host for a root: the root itself,
// and the git directories that git needs in it. That some are there, and why some
// cannot be, is logged.
func Mounts(root string, log *slog.Logger) []string {
	gitDirs, err := GitDirs(root)
	if err != nil {
		log.Warn("git may not work in a workspace", "error", err)
	}
	if len(gitDirs) > 0 {
		log.Info("mounting the git directory that a linked worktree or submodule uses", "count", len(gitDirs))
	}
	return append([]string{root}, gitDirs...)
}

// GitDirs returns the git directories outside the root that git needs in it:
// the common directory of a linked worktree (git worktree add), or the git
// directory of a submodule. It returns none for a plain repository and for no
// repository at all.
//
// The root's .git file is the workspace's word, and a hostile one could point
// at any directory to have it mounted. So a directory is returned only if it
// looks like git's and itself names this root as its working tree, which only
// someone who can write there could arrange. A .git that leads outside without
// that is an error that says so; the root can be used, git will not work in it.
func GitDirs(root string) ([]string, error) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	dotGit := filepath.Join(root, ".git")
	info, err := os.Lstat(dotGit)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && info.IsDir()) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notFollowed(dotGit, errors.New("is neither a file nor a directory"))
	}
	gitDir, err := readGitFile(dotGit)
	if err != nil {
		return nil, notFollowed(dotGit, withoutPath(err))
	}
	if within(root, gitDir) {
		return nil, nil
	}
	dir, err := ownerOf(gitDir, dotGit)
	if err != nil {
		return nil, notFollowed(dotGit, err)
	}
	if within(root, dir) {
		return nil, nil
	}
	return []string{dir}, nil
}

func notFollowed(dotGit string, err error) error {
	return fmt.Errorf("%q %w: its git directory is not shared; name it with --workspace if git is to work here",
		dotGit, err)
}

// readGitFile returns the resolved directory that a .git file points at.
func readGitFile(dotGit string) (string, error) {
	line, err := readPointer(dotGit)
	if err != nil {
		return "", err
	}
	target, ok := strings.CutPrefix(line, "gitdir:")
	if !ok {
		return "", errors.New(`does not begin with "gitdir:"`)
	}
	dir, err := realDir(from(filepath.Dir(dotGit), strings.TrimLeft(target, " \t")))
	if err != nil {
		return "", fmt.Errorf("points at a directory that cannot be used: %w", withoutPath(err))
	}
	return dir, nil
}

// ownerOf returns the directory to share for a git directory: the common one
// of a linked worktree, or itself for a submodule.
func ownerOf(gitDir, dotGit string) (string, error) {
	common, err := readPointer(filepath.Join(gitDir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, checkSubmodule(gitDir, dotGit)
	}
	if err != nil {
		return "", fmt.Errorf("points at a git directory whose commondir cannot be read: %w", withoutPath(err))
	}
	dir, err := realDir(from(gitDir, common))
	if err != nil {
		return "", fmt.Errorf("points at a worktree whose common directory cannot be used: %w", withoutPath(err))
	}
	return dir, checkWorktree(dir, gitDir, dotGit)
}

// checkWorktree wants <common>/worktrees/<id>, whose gitdir file names dotGit.
func checkWorktree(common, gitDir, dotGit string) error {
	if filepath.Dir(gitDir) != filepath.Join(common, "worktrees") {
		return errors.New("points at a worktree that is not one of its common directory")
	}
	if !looksLikeGit(common) {
		return errors.New("points at a directory that is not git's")
	}
	back, err := readPointer(filepath.Join(gitDir, "gitdir"))
	if err != nil {
		return fmt.Errorf("points at a worktree that names no working tree: %w", withoutPath(err))
	}
	// The directories are compared, not the .git files: those can be hard links
	// of one another.
	if filepath.Base(back) != ".git" || !sameDir(from(gitDir, filepath.Dir(back)), filepath.Dir(dotGit)) {
		return errors.New("points at the worktree of another directory")
	}
	return nil
}

// checkSubmodule wants a git directory whose core.worktree is dotGit's place.
func checkSubmodule(gitDir, dotGit string) error {
	if !looksLikeGit(gitDir) {
		return errors.New("points at a directory that is not git's")
	}
	config, err := readBounded(filepath.Join(gitDir, "config"), maxConfig)
	if err != nil {
		return fmt.Errorf("points at a git directory whose config cannot be read: %w", withoutPath(err))
	}
	worktree := coreWorktree(config)
	if worktree == "" || !sameDir(from(gitDir, worktree), filepath.Dir(dotGit)) {
		return errors.New("points at a git directory that does not name this working tree")
	}
	return nil
}

func looksLikeGit(dir string) bool {
	head, err := os.Lstat(filepath.Join(dir, "HEAD"))
	if err != nil || head.IsDir() {
		return false
	}
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// coreWorktree finds core.worktree, as git itself writes it, in a git config.
func coreWorktree(config string) string {
	section, worktree := "", ""
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.ToLower(line)
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if found && section == "[core]" && strings.EqualFold(strings.TrimSpace(key), "worktree") {
			worktree = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return worktree
}

// from reads a path as git does: relative to the directory of its file.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return dir + string(filepath.Separator) + path
}

func sameDir(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && infoA.IsDir() && os.SameFile(infoA, infoB)
}

// readPointer reads a file of one line, without control characters: the line
// may end up in an error on a terminal.
func readPointer(path string) (string, error) {
	text, err := readBounded(path, maxPointer)
	if err != nil {
		return "", err
	}
	text = strings.TrimRight(text, "\r\n")
	if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return "", errors.New("is not a file of one line of text")
	}
	return text, nil
}

// readBounded reads a regular file of at most limit bytes. It is opened so
// that a pipe or a link put in its place meanwhile neither blocks nor leads
// elsewhere.
func readBounded(path string, limit int64) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", err
	}
	if int64(len(data)) > limit {
		return "", fmt.Errorf("is longer than %d bytes", limit)
	}
	return string(data), nil
}
