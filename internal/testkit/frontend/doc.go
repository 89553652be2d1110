// Package frontend is what tests of the built program need around it: the
// programs, images and model that they run, and a look at what a front end left on the
// machine.
package frontend
