//go:build !unix

package main

func main() { panic("fakelease needs signals") }
