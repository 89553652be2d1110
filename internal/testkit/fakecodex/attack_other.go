//go:build !linux

package main

import "errors"

func signalInit(int) error { return errors.ErrUnsupported }

func limitInit(string, uint64) error { return errors.ErrUnsupported }
