package main

func Example() {
	main()
	// Output: price: 750
}
