// Package browsertest drives pages in headless Chromium as people use them. It finds controls by
// their role and the name that a screen reader would say. A click hits the element on top, and a
// test waits for text that can be read on the page.
//
//	var chromium browsertest.Chromium // one for all tests of the package
//
//	func TestMain(m *testing.M) {
//		code := m.Run()
//		chromium.Close()
//		os.Exit(code)
//	}
//
//	func TestSomebodyJoins(t *testing.T) {
//		ada := chromium.User(t, "Ada")
//		ada.Open(url)
//		ada.Type("Your name", "Ada")
//		ada.Press("Join")
//		ada.Sees("Ada has joined")
//	}
//
// Each [User] has its own cookies. A test also fails on uncaught exceptions, errors on the console,
// violations of the content security policy and requests that fail, unless it expects them
// ([User.Expects]). A failed test saves a picture of each page and prints the path.
//
// Chromium must be installed (Debian: apt-get install chromium). Without it tests
// are skipped. If chromium-headless-shell is installed too, most tests use it (see
// [Chromium.Tabs]).
package browsertest
