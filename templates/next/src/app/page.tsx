export default function Page() {
  return <p>POST to /orders/1 to place an order.</p>;
}
