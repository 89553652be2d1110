// Package credentials holds the tests of logins with single-use refresh tokens from end to end:
// front ends that are processes of their own, real sandboxes, a CLI that refreshes, and a token
// server that counts (see fakelogin).
package credentials
