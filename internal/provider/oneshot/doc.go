// Package oneshot runs one command of a CLI in a sandbox of its own: what a
// blocking call and a background job of claude and gemini have in common.
//
// A turn is over when its sandbox is verified gone. CLIs leave what their tools
// started behind when they are stopped, so ending the CLI is not enough.
package oneshot
