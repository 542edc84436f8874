// Package browsertest drives pages in headless Chromium the way people use them: controls are found
// by their role and the name that a screen reader would say, a click hits what lies on top, and
// what is awaited is what can be read on the page.
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
// Each [User] has cookies of their own. Besides what a test asks for, it fails on uncaught
// exceptions, errors on the console, violations of the content security policy and requests that
// fail, unless it expects them ([User.Expects]). A failed test leaves a picture of each page behind
// and says where.
//
// Chromium has to be installed (Debian: apt-get install chromium). Without it tests fail, with
// -short they are skipped.
package browsertest
