package main

func Example() {
	main()
	// Output: invoice 1234 over 700
}
