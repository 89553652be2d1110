package terminal

// onResize does nothing: Windows sends no signal when a console's size changes.
func onResize(func()) (stop func()) { return func() {} }
